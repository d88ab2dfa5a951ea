package trace

import "github.com/canaryctl/canaryctl/internal/release"

// figureFields are the fields of records on which figures of windows rest.
var figureFields = [...]struct {
	figures release.Figures
	fields  fieldSet
}{
	{release.HasSolved, 1 << FieldSolved},
	{release.HasViolations, 1 << FieldViolation},
	{release.HasTransfers, 1 << FieldTransfer},
	{release.HasCost | release.HasCostMean, 1 << FieldCostUSD},
	{release.HasP99 | release.HasSlow, 1 << FieldLatency},
	{release.HasTTFT | release.HasTTFTSlow, 1 << FieldTTFT},
	{release.HasITL, 1<<FieldITL | 1<<FieldTTFT | 1<<FieldLatency | 1<<FieldOutputTokens},
	{release.HasAborts, 1<<FieldStreamAborted | 1<<FieldTTFT | 1<<FieldITL | 1<<FieldStatus},
	{release.HasErrors | release.HasServerErrors, 1 << FieldStatus},
}

// alwaysRead are the fields that say which window a record is counted in, and
// whether it is one that was counted before.
const alwaysRead fieldSet = 1<<FieldTS | 1<<FieldUserID | 1<<FieldConversationID | 1<<FieldScene

// restsOn are the fields of records that are read for the columns wanted.
func (o *Options) restsOn() fieldSet {
	if o.Columns == nil {
		return ^fieldSet(0)
	}
	set := alwaysRead
	if !o.MergeArms || len(o.Arms) > 0 {
		set |= 1<<FieldArm | 1<<FieldVersion | 1<<FieldModel
	}
	for _, c := range o.Columns {
		for _, f := range figureFields {
			if columnTable[c.at].figures&f.figures != 0 {
				set |= f.fields
			}
		}
	}
	return set
}
