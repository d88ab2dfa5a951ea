// Looks at the page as it is drawn and returns what it sees; run by the test
// in a browser, never part of a report.
(() => {
  const colour = text => {
    const n = (text.match(/[\d.]+/g) || []).map(Number);
    if (!text.startsWith('rgb') || n.length < 3) return null;
    return { r: n[0], g: n[1], b: n[2], a: n.length > 3 ? n[3] : 1 };
  };
  const over = (top, under) => {
    const mix = c => top[c] * top.a + under[c] * (1 - top.a);
    return { r: mix('r'), g: mix('g'), b: mix('b'), a: 1 };
  };
  // WCAG 2.2, relative luminance and contrast ratio.
  const luminance = c => {
    const part = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * part(c.r) + 0.7152 * part(c.g) + 0.0722 * part(c.b);
  };
  const contrast = (a, b) => {
    const [hi, lo] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (hi + 0.05) / (lo + 0.05);
  };
  const behind = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(colour(getComputedStyle(e).backgroundColor));
    return layers.reverse().filter(Boolean).reduce((under, c) => over(c, under), { r: 255, g: 255, b: 255, a: 1 });
  };
  // Shapes of a chart that lie under a point, the lowest first.
  const shapesAt = (x, y) => document.elementsFromPoint(x, y).reverse()
    .filter(e => e.ownerSVGElement && e.tagName !== 'text')
    .map(e => {
      const s = getComputedStyle(e), c = colour(s.fill);
      return c && { ...c, a: c.a * s.fillOpacity * s.opacity };
    }).filter(Boolean);

  const box = e => { const r = e.getBoundingClientRect(); return { x: r.x, y: r.y + scrollY, w: r.width, h: r.height }; };
  const inside = (a, b, room) => a.x >= b.x - room && a.y >= b.y - room && a.x + a.w <= b.x + b.w + room && a.y + a.h <= b.y + b.h + room;
  const drawn = e => e.checkVisibility() && e.getBoundingClientRect().width > 0;

  const faint = [];
  let texts = 0, smallest = Infinity;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const e = node.parentElement;
    if (!node.data.trim() || ['title', 'desc', 'STYLE'].includes(e.tagName) || !drawn(e)) continue;
    texts++;
    const style = getComputedStyle(e), svg = e.ownerSVGElement;
    const zoom = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    smallest = Math.min(smallest, parseFloat(style.fontSize) * zoom);
    let grounds = [behind(e)];
    if (svg) {
      const r = e.getBoundingClientRect();
      grounds = [0.1, 0.5, 0.9].map(f => shapesAt(r.x + r.width * f, r.y + r.height / 2).reduce((under, c) => over(c, under), behind(e)));
    }
    const ink = colour(svg ? style.fill : style.color);
    const ratio = Math.min(...grounds.map(g => contrast(over(ink, g), g)));
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${node.data.trim().slice(0, 40)}`);
  }

  const charts = [...document.querySelectorAll('svg[role=img]')].filter(drawn).map(svg => {
    const frame = box(svg), plots = [...svg.querySelectorAll('.plot')].map(box), outside = [];
    const marks = svg.querySelectorAll('.series,.sigma,.chance,.between,.threshold,.threshold-mark,.sigma-mark,.point,.whisker,.bar,.band,.flagged,.incident,.excluded,.late,.below,.centre,.budget,.tolerable,.recommended,.step');
    for (const m of marks) if (!plots.some(p => inside(box(m), p, 5))) outside.push(`${m.tagName}.${m.getAttribute('class')}`);
    for (const t of svg.querySelectorAll('text')) if (!inside(box(t), frame, 0.5)) outside.push(`text ${t.textContent}`);
    return { id: svg.id, box: frame, marks: marks.length, outside, named: !!svg.querySelector('title') && !!svg.querySelector('desc') };
  });
  const series = document.querySelector('.series');
  return {
    faint, texts, smallest, charts,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    line: series ? getComputedStyle(series).stroke : '',
    page: getComputedStyle(document.body).backgroundColor,
    height: document.documentElement.scrollHeight,
  };
})()
