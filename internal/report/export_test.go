package report

// CalibrationYAMLOf writes settings that no measurement made.
var CalibrationYAMLOf = calibrationYAML
