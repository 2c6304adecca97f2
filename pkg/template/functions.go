package template

// FunctionNames lists the intrinsic functions and rule functions that Slipway knows, sorted
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html,
// …/intrinsic-function-reference-rules.html). Fn::GetStackOutput reads another stack's output (reference §7.8).
func FunctionNames() []string {
	return []string{
		"Fn::And", "Fn::Base64", "Fn::Cidr", "Fn::Contains", "Fn::EachMemberEquals", "Fn::EachMemberIn", "Fn::Equals",
		"Fn::FindInMap", "Fn::GetAZs", "Fn::GetAtt", "Fn::GetStackOutput", "Fn::If", "Fn::ImportValue", "Fn::Join", "Fn::Length",
		"Fn::Not", "Fn::Or", "Fn::RefAll", "Fn::Select", "Fn::Split", "Fn::Sub", "Fn::ToJsonString", "Fn::ValueOf",
		"Fn::ValueOfAll", "Ref",
	}
}
