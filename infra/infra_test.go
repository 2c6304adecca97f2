package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/statemachine"
)

func TestWithoutArchivesItSaysWhatToRun(t *testing.T) {
	_, err := findArchives(filepath.Join(t.TempDir(), "dist"))
	if err == nil || !strings.Contains(err.Error(), "run `make lambdas` first") {
		t.Errorf("the error is %v", err)
	}
	dist := t.TempDir()
	if err := writeArchives(dist, functionNames[1:]); err != nil {
		t.Fatal(err)
	}
	if _, err := findArchives(dist); err == nil || !strings.Contains(err.Error(), "planner.zip") {
		t.Errorf("the error is %v", err)
	}
}

func TestCloudControlCanProvisionEveryResource(t *testing.T) {
	for id, r := range readTemplate(t).Resources {
		known, ok := schema.Lookup(r.Type)
		if !ok || !known.Provisionable {
			t.Errorf("%s has the type %s, which the control plane could not deploy itself", id, r.Type)
		}
	}
}

func TestEveryParameterIsDescribedAndOnlyTheStateBucketIsRequired(t *testing.T) {
	f := readTemplate(t)
	for name, p := range f.Parameters {
		if p["Description"] == nil {
			t.Errorf("%s is not described", name)
		}
		if (p["Default"] == nil) != (name == "StateBucketName") {
			t.Errorf("the default of %s is %v", name, p["Default"])
		}
	}
	if len(f.Rules) != 0 || f.Parameters["BootstrapVersion"] != nil {
		t.Error("the template needs CDK's bootstrap")
	}
}

func TestFunctionsAreWhatLambdaRuns(t *testing.T) {
	f := readTemplate(t)
	codes := map[string]bool{}
	// A slice of a wave is five minutes at most, and a janitor works four on each of twenty operations at a time.
	timeouts := map[string]string{"Planner": "600", "Provisioner": "360", "Publisher": "900", "Janitor": "900", "Trigger": "60"}
	for id, r := range f.of(t, "AWS::Lambda::Function", 5) {
		p := r.Properties
		for path, want := range map[string]string{
			"Runtime": `"provided.al2023"`, "Architectures": `["arm64"]`, "Timeout": timeouts[id], "TracingConfig.Mode": `"Active"`,
			"LoggingConfig.LogGroup": `{"Ref":"` + id + `Log"}`, "Role": `{"Fn::GetAtt":["` + id + `Role","Arn"]}`,
		} {
			if got := text(at(p, path)); got != want {
				t.Errorf("%s: %s is %s, want %s", id, path, got, want)
			}
		}
		codes[text(at(p, "Code.S3Key"))] = true
		// SAM finds the archive by this.
		archive, _ := r.Metadata["aws:asset:path"].(string)
		if _, err := os.Stat(filepath.Join(assemblyDir(t), archive)); err != nil || archive == "" || r.Metadata["aws:asset:property"] != "Code" {
			t.Errorf("%s: the metadata is %v: %v", id, r.Metadata, err)
		}
		variables, _ := at(p, "Environment.Variables").(map[string]any)
		given := func(name string) string {
			v := strings.NewReplacer("[AWS::Partition]", "aws", "[AWS::Region]", "eu-west-1", "[AWS::AccountId]", "111122223333", "[JournalDays]", "90").Replace(rendered(variables[name]))
			return strings.ReplaceAll(v, "[NamePrefix]", "slipway")
		}
		env, err := controlplane.ReadEnvironment(func(name string) string {
			if variables[name] == nil {
				return ""
			}
			return given(name)
		})
		if err != nil || env.RunStateMachine.Resource != "stateMachine:slipway-run" || env.VaultKey != "[Vault.Arn]" || env.TableName != "[RunLog]" || env.UploadsBucket != "[Uploads]" ||
			env.StateBucket != "[StateBucketName]" || env.StateBucketRegion != "[StateBucketRegion]" || env.JournalRetention == 0 {
			t.Errorf("%s: the environment is %+v: %v", id, env, err)
		}
	}
	if len(codes) != 5 {
		t.Errorf("the functions share their code: %v", codes)
	}
}

func TestLogsAreForgotten(t *testing.T) {
	for id, r := range readTemplate(t).of(t, "AWS::Logs::LogGroup", 8) {
		if text(r.Properties["RetentionInDays"]) != `{"Ref":"LogRetentionDays"}` {
			t.Errorf("%s is kept for %v", id, r.Properties["RetentionInDays"])
		}
	}
}

func TestWhatKeepsDataIsEncryptedAndOutlivesTheStack(t *testing.T) {
	f := readTemplate(t)
	for _, c := range []struct{ id, path, want string }{
		{"Uploads", "BucketEncryption.ServerSideEncryptionConfiguration.0.ServerSideEncryptionByDefault.SSEAlgorithm", `{"Fn::If":["HasUploadsKey","aws:kms","AES256"]}`},
		{"Uploads", "BucketEncryption.ServerSideEncryptionConfiguration.0.ServerSideEncryptionByDefault.KMSMasterKeyID", `{"Fn::If":["HasUploadsKey",{"Ref":"UploadsKeyArn"},{"Ref":"AWS::NoValue"}]}`},
		{"Uploads", "NotificationConfiguration.EventBridgeConfiguration.EventBridgeEnabled", "true"},
		{"Uploads", "PublicAccessBlockConfiguration", `{"BlockPublicAcls":true,"BlockPublicPolicy":true,"IgnorePublicAcls":true,"RestrictPublicBuckets":true}`},
		{"Uploads", "VersioningConfiguration.Status", `"Enabled"`},
		{"Uploads", "LifecycleConfiguration.Rules.0.ExpirationInDays", `{"Ref":"UploadDays"}`},
		{"RunLog", "SSESpecification.SSEEnabled", "true"},
		{"RunLog", "SSESpecification.SSEType", `{"Fn::If":["HasTableKey","KMS",{"Ref":"AWS::NoValue"}]}`},
		{"RunLog", "SSESpecification.KMSMasterKeyId", `{"Fn::If":["HasTableKey",{"Ref":"TableKeyArn"},{"Ref":"AWS::NoValue"}]}`},
		{"RunLog", "BillingMode", `"PAY_PER_REQUEST"`},
		{"RunLog", "PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled", "true"},
		{"RunLog", "TimeToLiveSpecification", `{"AttributeName":"expires","Enabled":true}`},
		{"RunLog", "DeletionProtectionEnabled", `{"Fn::If":["ProtectsTable",true,false]}`},
		{"RunLog", "KeySchema", `[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]`},
		{"RunLog", "GlobalSecondaryIndexes.0.IndexName", `"runs"`},
		{"Vault", "EnableKeyRotation", "true"},
		{"Undelivered", "SqsManagedSseEnabled", "true"},
	} {
		if got := text(at(f.Resources[c.id].Properties, c.path)); got != c.want {
			t.Errorf("%s: %s is %s, want %s", c.id, c.path, got, c.want)
		}
	}
	for _, id := range []string{"Uploads", "RunLog", "Vault"} {
		if f.Resources[id].DeletionPolicy != "Retain" {
			t.Errorf("%s is deleted with the stack", id)
		}
	}
	deny := at(f.Resources["UploadsPolicy"].Properties, "PolicyDocument.Statement.0")
	if at(deny, "Effect") != "Deny" || text(at(deny, "Condition")) != `{"Bool":{"aws:SecureTransport":"false"}}` || len(at(deny, "Resource").([]any)) != 2 {
		t.Errorf("the bucket's policy is %s", text(deny))
	}
}

// allResources are the actions that support no narrower resource than all, because AWS lists no resource type for them
// in its service authorization reference; and those on network interfaces, for which Lambda asks so.
var allResources = regexp.MustCompile(`^(xray:(Put|Get)|logs:(Create|Get|Update|Delete|List)LogDeliver|logs:PutResourcePolicy|logs:Describe|ec2:(DescribeAvailabilityZones$|DescribeNetworkInterfaces$|DescribeSubnets$|(Create|Delete)NetworkInterface$|(Una|A)ssignPrivateIpAddresses$)|cloudformation:(Create|Update|Delete|Get)Resource)`)

func TestRolesAllowNoMoreThanTheyNeed(t *testing.T) {
	f := readTemplate(t)
	for id, r := range f.of(t, "AWS::IAM::Role", 9) {
		if r.Properties["ManagedPolicyArns"] != nil {
			t.Errorf("%s has managed policies", id)
		}
		if text(r.Properties["PermissionsBoundary"]) != `{"Fn::If":["HasPermissionsBoundary",{"Ref":"PermissionsBoundaryArn"},{"Ref":"AWS::NoValue"}]}` {
			t.Errorf("the boundary of %s is %v", id, r.Properties["PermissionsBoundary"])
		}
		for _, s := range f.statements(id) {
			for _, a := range at(s, "Action").([]any) {
				action := a.(string)
				if strings.Contains(action, "*") || strings.HasPrefix(action, "iam:") {
					t.Errorf("%s allows %s", id, action)
				}
				for _, on := range at(s, "Resource").([]any) {
					if on == "*" && !allResources.MatchString(action) {
						t.Errorf("%s allows %s on everything", id, action)
					}
				}
			}
		}
	}
}

// allowed lists what a role allows on a kind of resource: the actions by resource.
func (f templateFile) allowed(role, service string) map[string]string {
	out := map[string]string{}
	for _, s := range f.statements(role) {
		if at(s, "Effect") == "Deny" {
			continue
		}
		for _, a := range at(s, "Action").([]any) {
			of, verb, _ := strings.Cut(a.(string), ":")
			if of != service {
				continue
			}
			for _, on := range at(s, "Resource").([]any) {
				out[rendered(on)] += " " + verb
			}
		}
	}
	return out
}

func TestEachRoleReachesItsOwnResources(t *testing.T) {
	f := readTemplate(t)
	const bucket = "arn:[AWS::Partition]:s3:::[StateBucketName]"
	const states = "arn:[AWS::Partition]:states:[AWS::Region]:[AWS::AccountId]:"
	all := map[string]string{
		bucket: " ListBucket", bucket + "/cdkd/*": " GetObject PutObject DeleteObject", bucket + "/slipway/*": " GetObject PutObject DeleteObject",
	}
	const uploads = "[Uploads.Arn]"
	read := map[string]string{uploads + "/uploads/*": " GetObjectVersion", uploads + "/inbox/*": " GetObjectVersion", uploads: " ListBucket"}
	with := func(a, b map[string]string) map[string]string {
		both := maps.Clone(a)
		maps.Copy(both, b)
		return both
	}
	one := map[string]string{bucket: " ListBucket", bucket + "/slipway/runs/*": " GetObject PutObject DeleteObject"}
	roles := map[string]string{"arn:[AWS::Partition]:iam::*:role/[ExecutionRoleNames]": " AssumeRole TagSession"}
	keys := map[string]string{
		"[StateBucketKeyArn]": " Decrypt GenerateDataKey", "[TableKeyArn]": " Decrypt DescribeKey Encrypt GenerateDataKey ReEncryptFrom ReEncryptTo",
	}
	describe := map[string]string{states + "execution:[NamePrefix]-run:*": " DescribeExecution"}
	for _, c := range []struct {
		role, service string
		want          map[string]string
	}{
		{"PlannerRole", "s3", with(with(all, read), map[string]string{uploads + "/uploads/*/reports/*": " PutObject", uploads + "/uploads/*": " GetObjectVersion GetObject"})},
		{"PublisherRole", "s3", with(with(map[string]string{bucket + "/slipway/runs/*": " GetObject"}, read), map[string]string{
			"arn:[AWS::Partition]:s3:::cdk-*-assets-[AWS::AccountId]-*": " ListBucket", "arn:[AWS::Partition]:s3:::cdk-*-assets-[AWS::AccountId]-*/*": " GetObject PutObject",
		})},
		{"TriggerRole", "s3", map[string]string{uploads + "/inbox/*": " GetObjectVersion", uploads: " ListBucket"}},
		{"TriggerRole", "dynamodb", map[string]string{}},
		{"TriggerRole", "states", map[string]string{states + "stateMachine:[NamePrefix]-run": " StartExecution"}},
		{"TriggerRole", "sqs", map[string]string{"[Undelivered.Arn]": " SendMessage"}},
		{"TriggerRole", "sts", map[string]string{}},
		{"PlannerRole", "sts", roles}, {"ProvisionerRole", "sts", roles}, {"PublisherRole", "sts", roles}, {"JanitorRole", "sts", roles},
		{"JanitorRole", "s3", all},
		{"ProvisionerRole", "s3", one},
		{"PlannerRole", "states", describe},
		{"JanitorRole", "states", describe},
		{"ProvisionerRole", "states", map[string]string{}},
		{"PublisherRole", "states", map[string]string{}},
		{"PublisherRole", "cloudformation", map[string]string{}},
		{"PublisherRole", "kms", with(keys, map[string]string{"[UploadsKeyArn]": " Decrypt"})},
		{"ProvisionerRole", "kms", with(map[string]string{"[Vault.Arn]": " Decrypt"}, keys)},
		{"PlannerRole", "kms", with(with(map[string]string{"[Vault.Arn]": " GenerateDataKey Decrypt"}, keys), map[string]string{"[UploadsKeyArn]": " Decrypt GenerateDataKey"})},
		{"TriggerRole", "kms", map[string]string{"[UploadsKeyArn]": " Decrypt"}},
		{"ProvisionerRole", "dynamodb", map[string]string{"[RunLog.Arn]": " GetItem PutItem ConditionCheckItem"}},
		{"JanitorRole", "dynamodb", map[string]string{
			"[RunLog.Arn]":            " Query UpdateItem GetItem PutItem ConditionCheckItem BatchGetItem",
			"[RunLog.Arn]/index/open": " Query", "[RunLog.Arn]/index/runs": " Query",
		}},
		{"RunMachineRole", "lambda", map[string]string{
			"[Planner.Arn]": " InvokeFunction", "[Provisioner.Arn]": " InvokeFunction", "[Publisher.Arn]": " InvokeFunction",
		}},
		{"SettleMachineRole", "lambda", map[string]string{"[Janitor.Arn]": " InvokeFunction"}},
		{"SettleMachineRole", "states", map[string]string{}},
		{"RunMachineRole", "states", map[string]string{
			"[SettleMachine.Arn]": " StartExecution", states + "stateMachine:[NamePrefix]-run": " StartExecution",
			states + "execution:[NamePrefix]-run:*": " DescribeExecution StopExecution",
		}},
		{"DiedMachineRole", "states", map[string]string{"[SettleMachine.Arn]": " StartExecution"}},
		{"RuleRole", "states", map[string]string{"[DiedMachine.Arn]": " StartExecution"}},
	} {
		if got := f.allowed(c.role, c.service); text(got) != text(c.want) {
			t.Errorf("%s: what %s allows is\n%s\nwant\n%s", c.service, c.role, text(got), text(c.want))
		}
	}
}

func TestStateMachinesAreTheShippedOnesWithEveryPlaceholderFilled(t *testing.T) {
	f := readTemplate(t)
	machines := f.of(t, "AWS::StepFunctions::StateMachine", 3)
	placeholder := regexp.MustCompile(`\$\{([^}]*)\}`)
	for id, r := range machines {
		p := r.Properties
		definition, _ := p["DefinitionString"].(string)
		substitutions := map[string]string{}
		for name, v := range p["DefinitionSubstitutions"].(map[string]any) {
			substitutions[name] = rendered(v)
			if !strings.Contains(definition, "${"+name+"}") {
				t.Errorf("%s: nothing in the definition is called %s", id, name)
			}
		}
		for _, name := range placeholder.FindAllStringSubmatch(definition, -1) {
			if substitutions[name[1]] == "" {
				t.Errorf("%s: nothing is put in place of %s", id, name[0])
			}
		}
		if !json.Valid([]byte(definition)) {
			t.Errorf("%s: the definition is not JSON", id)
		}
		if want := map[string]string{"RunMachine": string(statemachine.Run), "SettleMachine": string(statemachine.Settle)}[id]; want != "" {
			if definition != want {
				t.Errorf("%s is not the shipped definition", id)
			}
		} else {
			// The local executor knows no intrinsic functions; all else in it must be right.
			const intrinsic = "States.StringToJson($.input)"
			if strings.Count(definition, intrinsic) != 1 {
				t.Errorf("%s reads the execution's input in another way", id)
			}
			definition = strings.Replace(definition, intrinsic, "$.input", 1)
		}
		if _, err := asl.Load([]byte(definition), substitutions); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if p["StateMachineType"] != "STANDARD" || at(p, "TracingConfiguration.Enabled") != true ||
			at(p, "LoggingConfiguration.Level") != "ERROR" || at(p, "LoggingConfiguration.IncludeExecutionData") != false ||
			text(at(p, "LoggingConfiguration.Destinations.0.CloudWatchLogsLogGroup.LogGroupArn")) != `{"Fn::GetAtt":["`+id+`Log","Arn"]}` {
			t.Errorf("%s: its properties are %s", id, text(p))
		}
	}
	// The functions know the run state machine by its name.
	if got := rendered(machines["RunMachine"].Properties["StateMachineName"]); got != "[NamePrefix]-run" {
		t.Errorf("the run state machine is called %s", got)
	}
}

func TestADeadExecutionIsSettled(t *testing.T) {
	f := readTemplate(t)
	rule := f.Resources["RunDied"].Properties
	if got := text(at(rule, "EventPattern.detail")); got != `{"stateMachineArn":[{"Fn::GetAtt":["RunMachine","Arn"]}],"status":["FAILED","TIMED_OUT","ABORTED"]}` {
		t.Errorf("the rule looks for %s", got)
	}
	for path, want := range map[string]string{
		"Targets.0.Arn": "[DiedMachine.Arn]", "Targets.0.RoleArn": "[RuleRole.Arn]", "Targets.0.DeadLetterConfig.Arn": "[Undelivered.Arn]", "Targets.0.InputPath": "$.detail",
	} {
		if got := rendered(at(rule, path)); got != want {
			t.Errorf("%s of the rule is %s, want %s", path, got, want)
		}
	}
	send := at(f.Resources["UndeliveredPolicy"].Properties, "PolicyDocument.Statement.0")
	if rendered(at(send, "Condition.ArnEquals.aws:SourceArn")) != `[{"Fn::GetAtt":["RunDied","Arn"]},{"Fn::GetAtt":["Sweep","Arn"]},{"Fn::GetAtt":["InboxObject","Arn"]}]` || text(at(send, "Action")) != `["sqs:SendMessage"]` {
		t.Errorf("the queue's policy is %s", text(send))
	}
}

func TestTheSweepComesRoundEveryFiveMinutes(t *testing.T) {
	f := readTemplate(t)
	rule := f.Resources["Sweep"].Properties
	for path, want := range map[string]string{
		"ScheduleExpression": "rate(5 minutes)", "Targets.0.Arn": "[Janitor.Arn]", "Targets.0.DeadLetterConfig.Arn": "[Undelivered.Arn]",
	} {
		if got := rendered(at(rule, path)); got != want {
			t.Errorf("%s of the rule is %s, want %s", path, got, want)
		}
	}
	sample, err := os.ReadFile("../events/janitor-sweep.json")
	if err != nil {
		t.Fatal(err)
	}
	var sent, documented any
	input, _ := at(rule, "Targets.0.Input").(string)
	if json.Unmarshal([]byte(input), &sent) != nil || json.Unmarshal(sample, &documented) != nil || text(sent) != text(documented) {
		t.Errorf("the rule sends %s, the sample is %s", input, sample)
	}
	may := f.Resources["SweepPermission"].Properties
	for path, want := range map[string]string{
		"FunctionName": "[Janitor]", "Principal": "events.amazonaws.com", "SourceArn": "[Sweep.Arn]", "Action": "lambda:InvokeFunction",
	} {
		if got := rendered(at(may, path)); got != want {
			t.Errorf("%s of the permission is %s, want %s", path, got, want)
		}
	}
}

func TestAlarmsReachTheTopicIfThereIsOne(t *testing.T) {
	f := readTemplate(t)
	for id, r := range f.of(t, "AWS::CloudWatch::Alarm", 8) {
		if got := text(r.Properties["AlarmActions"]); got != `{"Fn::If":["HasAlarmTopic",[{"Ref":"AlarmTopicArn"}],{"Ref":"AWS::NoValue"}]}` {
			t.Errorf("%s: the actions are %s", id, got)
		}
	}
	var body struct{ Widgets []any }
	if err := json.Unmarshal([]byte(rendered(f.Resources["Dashboard"].Properties["DashboardBody"])), &body); err != nil || len(body.Widgets) != 12 {
		t.Errorf("the dashboard has %d widgets: %v", len(body.Widgets), err)
	}
}

func TestSAMIsPointedAtTheTemplate(t *testing.T) {
	b, err := os.ReadFile("../samconfig.toml")
	if err != nil {
		t.Fatal(err)
	}
	pointed := regexp.MustCompile(`(?m)^template_file = "(.*)"$`).FindAllStringSubmatch(string(b), -1)
	if len(pointed) != 5 {
		t.Errorf("%d commands of SAM are told where the template is, want 5", len(pointed))
	}
	for _, p := range pointed {
		if p[1] != "infra/cdk.out/"+stackName+".template.json" {
			t.Errorf("SAM is pointed at %s", p[1])
		}
	}
}

func TestCDKHasNothingToSayAgainstTheTemplate(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(assemblyDir(t), "validation-report.json"))
	if os.IsNotExist(err) {
		return // it is written only where there is something to report
	}
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		PluginReports []struct{ Violations []map[string]any }
	}
	if err := json.Unmarshal(b, &report); err != nil {
		t.Fatal(err)
	}
	for _, p := range report.PluginReports {
		for _, v := range p.Violations {
			t.Errorf("%v: %v", v["ruleName"], v["description"])
		}
	}
}

func TestTheAssemblyHoldsTheFunctions(t *testing.T) {
	asm, err := assembly.Read(assemblyDir(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(asm.Stacks) != 1 || asm.Stacks[0].Name != stackName || len(asm.Stacks[0].Assets) != 5 {
		t.Errorf("the assembly has %d stacks", len(asm.Stacks))
	}
}
