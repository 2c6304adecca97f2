package cloudcontrol_test

import (
	"encoding/json"
	"strings"
)

// unmarshal decodes JSON as the engine does: numbers as json.Number.
func unmarshal(text string, into any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}
