package intrinsic_test

func lookupCases() []languageCase {
	return []languageCase{
		{name: "FindInMap finds", doc: docFindInMap, value: `{"Fn::FindInMap": ["Regions", {"Ref": "AWS::Region"}, "Ami"]}`, want: `"ami-1"`},
		{name: "FindInMap gives lists", doc: docFindInMap, value: `{"Fn::FindInMap": ["Regions", "eu-west-1", "Zones"]}`, want: `["a", "b"]`},
		{name: "FindInMap gives numbers as they stand", doc: docFindInMap, value: `{"Fn::FindInMap": ["Regions", "eu-west-1", "Count"]}`, want: `3`},
		{name: "FindInMap computes the mapping's name", doc: docFindInMap, value: `{"Fn::FindInMap": [{"Fn::Sub": "Regions"}, {"Fn::Join": ["-", ["us", "east", "1"]]}, {"Fn::Select": [0, ["Ami"]]}]}`, want: `"ami-2"`},
		{name: "FindInMap without the top-level key fails", doc: docFindInMap, value: `{"Fn::FindInMap": ["Regions", "ap-south-1", "Ami"]}`, fails: "the mapping Regions has no such top-level key"},
		{name: "FindInMap without the second-level key fails", doc: docFindInMap, value: `{"Fn::FindInMap": ["Regions", "us-east-1", "Zones"]}`, fails: "the mapping Regions has no such second-level key"},
		{name: "FindInMap without the mapping fails", doc: docFindInMap, value: `{"Fn::FindInMap": ["Region", "us-east-1", "Ami"]}`, fails: "unknown mapping: did you mean Regions?"},
		{name: "FindInMap falls back to its DefaultValue", doc: docFindInMap, value: `{"Fn::FindInMap": ["Regions", "ap-south-1", "Ami", {"DefaultValue": {"Ref": "Env"}}]}`, want: `"prod"`},
		{name: "FindInMap prefers what it finds to its DefaultValue", doc: docFindInMap, value: `{"Fn::FindInMap": ["Regions", "us-east-1", "Ami", {"DefaultValue": "none"}]}`, want: `"ami-2"`},
		{name: "FindInMap with another fourth argument fails", doc: docFindInMap, value: `{"Fn::FindInMap": ["Regions", "us-east-1", "Ami", "none"]}`, fails: "the fourth argument is an object with a DefaultValue"},
		{name: "FindInMap with a key that is a list fails", doc: docFindInMap, value: `{"Fn::FindInMap": ["Regions", {"Ref": "Names"}, "Ami"]}`, fails: "the key of a mapping is not a string"},
		{name: "FindInMap with two arguments fails", doc: docFindInMap, value: `{"Fn::FindInMap": ["Regions", "us-east-1"]}`, fails: "it takes the names of a mapping"},

		{name: "GetAZs of an empty string is the stack's region", doc: docGetAZs, value: `{"Fn::GetAZs": ""}`, want: `["eu-west-1a", "eu-west-1b", "eu-west-1c"]`},
		{name: "GetAZs of AWS::Region", doc: docGetAZs, value: `{"Fn::GetAZs": {"Ref": "AWS::Region"}}`, want: `["eu-west-1a", "eu-west-1b", "eu-west-1c"]`},
		{name: "GetAZs of another region", doc: docGetAZs, value: `{"Fn::GetAZs": "us-east-1"}`, want: `["us-east-1a"]`},
		{name: "GetAZs of a region that is not known fails", doc: docGetAZs, value: `{"Fn::GetAZs": "mars-north-1"}`, fails: "the availability zones of mars-north-1 are not known"},
		{name: "GetAZs of null fails", doc: docGetAZs, value: `{"Fn::GetAZs": null}`, fails: "Fn::GetAZs takes the name of a region: found null"},
		{name: "Select of GetAZs", doc: docGetAZs, value: `{"Fn::Select": ["1", {"Fn::GetAZs": ""}]}`, want: `"eu-west-1b"`},

		{name: "ImportValue reads an export", doc: docImport, value: `{"Fn::ImportValue": "Net-Vpc"}`, want: `"vpc-1"`},
		{name: "ImportValue of a name that can not be computed fails", doc: docImport, value: `{"Fn::ImportValue": {"Fn::Sub": "${N}-Vpc"}}`, fails: "nothing is called N"},
		{name: "ImportValue joins the name", doc: docImport, value: `{"Fn::ImportValue": {"Fn::Join": ["-", ["Net", "Vpc"]]}}`, want: `"vpc-1"`},
		{name: "ImportValue of nothing fails and names the export", doc: docImport, value: `{"Fn::ImportValue": "Net-Nothing"}`, fails: "no stack exports Net-Nothing"},
		{name: "ImportValue of a list fails", doc: docImport, value: `{"Fn::ImportValue": ["Net-Vpc"]}`, fails: "Fn::ImportValue takes the name of an export"},
		{name: "an imported list stays a list", doc: docImport, value: `{"Fn::Select": [1, {"Fn::ImportValue": "Net-List"}]}`, want: `"s2"`},

		{name: "GetStackOutput reads in the stack's region", doc: docReferenceOutput, value: `{"Fn::GetStackOutput": {"StackName": "Net", "OutputName": "Vpc"}}`, want: `"vpc-9"`},
		{name: "GetStackOutput reads in another region", doc: docReferenceOutput, value: `{"Fn::GetStackOutput": {"StackName": "Net", "OutputName": "Vpc", "Region": "us-east-1"}}`, want: `"vpc-us"`},
		{name: "GetStackOutput of nothing fails", doc: docReferenceOutput, value: `{"Fn::GetStackOutput": {"StackName": "Net", "OutputName": "Nope"}}`, fails: "the stack Net in eu-west-1 has no output Nope"},
		{name: "GetStackOutput of the own stack fails", doc: docReferenceOutput, value: `{"Fn::GetStackOutput": {"StackName": "Shop", "OutputName": "Vpc"}}`, fails: "a stack can't read its own output"},
		{name: "GetStackOutput without an output fails", doc: docReferenceOutput, value: `{"Fn::GetStackOutput": {"StackName": "Net"}}`, fails: "Fn::GetStackOutput needs a StackName and an OutputName"},
		{name: "GetStackOutput checks the region", doc: docReferenceOutput, value: `{"Fn::GetStackOutput": {"StackName": "Net", "OutputName": "Vpc", "Region": "evil.example/"}}`, fails: "the region is not the name of a region"},
		{name: "GetStackOutput with a misspelt member fails", doc: docReferenceOutput, value: `{"Fn::GetStackOutput": {"Stack": "Net", "OutputName": "Vpc"}}`, fails: "unknown member of Fn::GetStackOutput"},

		{name: "an unknown function fails and suggests", doc: docReference + ".html", value: `{"Fn::Joni": [",", []]}`, fails: "unknown function Fn::Joni: did you mean Fn::Join?"},
		{name: "a macro fails", doc: docReference + ".html", value: `{"Fn::Transform": {"Name": "AWS::Include"}}`, fails: "unknown function Fn::Transform"},
	}
}

const docReferenceOutput = "reference §7.8"

func logicCases() []languageCase {
	return []languageCase{
		{name: "If takes the first value when the condition is true", doc: docConditions, value: `{"Fn::If": ["Yes", "a", "b"]}`, want: `"a"`},
		{name: "If takes the second value when the condition is false", doc: docConditions, value: `{"Fn::If": ["No", "a", "b"]}`, want: `"b"`},
		{name: "If resolves only the chosen branch", doc: docConditions, value: `{"Fn::If": ["Yes", {"Ref": "Env"}, {"Ref": "Nope"}]}`, want: `"prod"`},
		{name: "If may choose a resource that does not exist in the other branch", doc: docConditions, value: `{"Fn::If": ["No", {"Ref": "Never"}, "none"]}`, want: `"none"`},
		{name: "If nests", doc: docConditions, value: `{"Fn::If": ["No", "a", {"Fn::If": ["Yes", "b", "c"]}]}`, want: `"b"`},
		{name: "If with AWS::NoValue drops the property", doc: docConditions, value: `{"A": {"Fn::If": ["No", 1, {"Ref": "AWS::NoValue"}]}}`, want: `{}`},
		{name: "If with an unknown condition fails", doc: docConditions, value: `{"Fn::If": ["Yess", "a", "b"]}`, fails: "unknown condition Yess: did you mean Yes?"},
		{name: "If with an expression fails", doc: docConditions, value: `{"Fn::If": [{"Fn::Equals": ["a", "a"]}, "a", "b"]}`, fails: "the condition of Fn::If is the name of a condition"},
		{name: "If with two arguments fails", doc: docConditions, value: `{"Fn::If": ["Yes", "a"]}`, fails: "it takes a condition, a value if true and a value if false"},
		{name: "Equals outside Conditions fails", doc: docConditions, value: `{"Fn::Equals": ["a", "a"]}`, fails: "Fn::Equals can't be used here"},
		{name: "And outside Conditions fails", doc: docConditions, value: `{"Fn::And": [{"Condition": "Yes"}, {"Condition": "Yes"}]}`, fails: "Fn::And can't be used here"},
		{name: "Not outside Conditions fails", doc: docConditions, value: `{"Fn::Not": [{"Condition": "Yes"}]}`, fails: "Fn::Not can't be used here"},
		{name: "a Condition key in a property is data", doc: docConditions, value: `{"Condition": "Yes"}`, want: `{"Condition": "Yes"}`},
		{name: "a Contains function in a property fails", doc: docGuide + "rules-section-structure.html", value: `{"Fn::Contains": [["a"], "a"]}`, fails: "Fn::Contains can't be used here"},
	}
}

func unknownCases() []languageCase {
	return []languageCase{
		{name: "Ref of a resource that does not exist yet is unknown", doc: docRef, value: `{"Ref": "Later"}`, waits: []string{"Later"}},
		{name: "GetAtt of a resource that does not exist yet is unknown", doc: docGetAtt, value: `{"Fn::GetAtt": ["Later", "TopicArn"]}`, waits: []string{"Later.TopicArn"}},
		{name: "a resource that will be replaced is unknown", doc: docRef, value: `{"Ref": "Replaced"}`, waits: []string{"Replaced"}},
		{name: "Join over an unknown is unknown and waits for all", doc: docJoin, value: `{"Fn::Join": [",", [{"Ref": "Later"}, "a", {"Fn::GetAtt": ["Replaced", "Arn"]}]]}`, waits: []string{"Later", "Replaced.Arn"}},
		{name: "Sub over an unknown is unknown", doc: docSub, value: `{"Fn::Sub": "${Env} ${Later.TopicName} ${Later}"}`, waits: []string{"Later", "Later.TopicName"}},
		{name: "Split of an unknown is unknown", doc: docSplit, value: `{"Fn::Split": ["/", {"Ref": "Later"}]}`, waits: []string{"Later"}},
		{name: "Select of an unknown list is unknown", doc: docSelect, value: `{"Fn::Select": [0, {"Fn::Split": ["/", {"Ref": "Later"}]}]}`, waits: []string{"Later"}},
		{name: "Select of a known item beside an unknown one is known", doc: docSelect, value: `{"Fn::Select": [1, [{"Ref": "Later"}, "known"]]}`, want: `"known"`},
		{name: "Select of the unknown item is unknown", doc: docSelect, value: `{"Fn::Select": [0, [{"Ref": "Later"}, "known"]]}`, waits: []string{"Later"}},
		{name: "Length of a list with unknown items is known", doc: docLength, value: `{"Fn::Length": [{"Ref": "Later"}, "b"]}`, want: `2`},
		{name: "Length of an unknown list is unknown", doc: docLength, value: `{"Fn::Length": {"Fn::Split": [",", {"Ref": "Later"}]}}`, waits: []string{"Later"}},
		{name: "Base64 of an unknown is unknown", doc: docBase64, value: `{"Fn::Base64": {"Ref": "Later"}}`, waits: []string{"Later"}},
		{name: "ToJsonString over an unknown is unknown", doc: docToJSON, value: `{"Fn::ToJsonString": {"a": [{"Ref": "Later"}]}}`, waits: []string{"Later"}},
		{name: "Cidr of an unknown block is unknown", doc: docCidr, value: `{"Fn::Cidr": [{"Fn::GetAtt": ["Later", "CidrBlock"]}, 2, 8]}`, waits: []string{"Later.CidrBlock"}},
		{name: "If with the unknown in the other branch is known", doc: docConditions, value: `{"Fn::If": ["Yes", "a", {"Ref": "Later"}]}`, want: `"a"`},
		{name: "If with the unknown in the chosen branch is unknown", doc: docConditions, value: `{"Fn::If": ["No", "a", {"Ref": "Later"}]}`, waits: []string{"Later"}},
		{name: "an import that this deployment will publish is unknown", doc: docImport, value: `{"Fn::ImportValue": "Soon"}`, waits: []string{"export:Soon"}},
		{name: "a stack output that this deployment will publish is unknown", doc: docReferenceOutput, value: `{"Fn::GetStackOutput": {"StackName": "Net", "OutputName": "Soon"}}`, waits: []string{"output:Net|eu-west-1|Soon"}},
		{name: "an unknown and a problem are a problem", doc: docJoin, value: `{"Fn::Join": [",", [{"Ref": "Later"}, {"Ref": "Nope"}]]}`, fails: "nothing is called Nope"},
		{name: "FindInMap with an unknown key is unknown", doc: docFindInMap, value: `{"Fn::FindInMap": ["Regions", {"Ref": "Later"}, "Ami"]}`, waits: []string{"Later"}},
	}
}
