package intrinsic

import "github.com/slipway-cdk/slipway/pkg/template"

// HasUnknown lists, sorted and distinct, what the Unknowns inside a value wait for. It is nil for a value
// that is known throughout.
func HasUnknown(v any) []string {
	var refs []string
	gather(v, &refs)
	if refs == nil {
		return nil
	}
	return unknown(refs).Refs
}

// IsIntrinsic reports whether a value is an intrinsic function: an object whose only key is Ref or starts
// with "Fn::".
func IsIntrinsic(v any) bool {
	_, _, ok := template.Intrinsic(v)
	return ok
}
