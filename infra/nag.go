package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"

	"github.com/slipway-cdk/slipway/pkg/assembly"
)

// check has cdk-nag hold the app against its rules for AWS solutions (https://github.com/cdklabs/cdk-nag). What it
// finds, and is not suppressed below with its reason, is a problem of the synthesis.
func check(app awscdk.App) {
	awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{Verbose: jsii.Bool(true), Reports: jsii.Bool(false)}), nil)
	stack := app.Node().FindChild(jsii.String(stackName))
	for _, s := range []struct{ construct, rule, reason string }{
		{"Uploads", "S1", "Who has put what there is in the account's trail, whose data events a team turns on where it wants them; a second bucket for access logs would tell less, later, and never end."},
		{"Undelivered", "SQS3", "It is the dead-letter queue of the rules and functions, which is not seen because they are no queues."},
		{"Undelivered", "SQS4", "Its policy refuses what does not come over TLS. It is an AWS::SQS::QueueInlinePolicy, which the rule does not look at: Cloud Control can provision it, and not AWS::SQS::QueuePolicy."},
		{"RunMachine", "SF1", "A run's events are in the table, which is what people read; the log of every state of every run would cost more than the run. Errors are logged, and never what goes in and out of a state."},
		{"SettleMachine", "SF1", "As of the machine of runs: errors are logged, and never what goes in and out of a state."},
		{"DiedMachine", "SF1", "As of the machine of runs: errors are logged, and never what goes in and out of a state."},
	} {
		suppress(stack.Node().FindChild(jsii.String(s.construct)), s.rule, s.reason)
	}
	// What has wildcards in it, each by its own pattern: another wildcard is found.
	for _, s := range []struct {
		pattern, reason string
		in              []string
	}{
		{`^Resource::\*$`, "X-Ray, the delivery of state machine logs, availability zones and Cloud Control's actions support no narrower resource; docs/permissions.md has each with its source.",
			[]string{"PlannerRole", "ProvisionerRole", "PublisherRole", "JanitorRole", "TriggerRole", "RunMachineRole", "SettleMachineRole", "DiedMachineRole"}},
		{`^Resource::arn:<AWS::Partition>:s3:::<StateBucketName>/(cdkd|slipway|slipway/runs)/\*$`, "Records and runs are objects whose keys have the names of stacks and runs in them.",
			[]string{"PlannerRole", "ProvisionerRole", "PublisherRole", "JanitorRole"}},
		{`^Resource::arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:<NamePrefix>-run:\*$`, "Executions have the names of stacks and runs; they are those of one state machine.",
			[]string{"PlannerRole", "JanitorRole", "RunMachineRole"}},
		{`^Resource::arn:<AWS::Partition>:iam::\*:role/<ExecutionRoleNames>$`, "The roles that stacks are deployed under, in any account: by the pattern of their names that the installation chooses, and only those that trust this control plane.",
			[]string{"PlannerRole", "ProvisionerRole", "PublisherRole", "JanitorRole"}},
		{`^Resource::<Uploads.Arn>/(uploads|inbox|uploads/\*/reports)/\*$`, "Uploads are objects below the ids of callers and the names of inboxes.",
			[]string{"PlannerRole", "PublisherRole", "TriggerRole"}},
		{`^Resource::arn:<AWS::Partition>:ssm:\*:(:parameter/aws/service|<AWS::AccountId>:parameter/cdk-bootstrap)/\*$`, "The public parameters of AWS and of CDK's bootstrap, in the regions of the stacks.",
			[]string{"PlannerRole"}},
		{`^Resource::arn:<AWS::Partition>:s3:::cdk-\*-assets-<AWS::AccountId>-\*(/\*)?$`, "The asset buckets of CDK's bootstrap, whatever their qualifier and region, of this account alone.",
			[]string{"PublisherRole"}},
		{`^Resource::arn:<AWS::Partition>:s3:::<Uploads>/uploads/<aws:userid>/\*$`, "A caller's own prefix, and nobody else's.",
			[]string{"CallerPolicy"}},
	} {
		for _, id := range s.in {
			suppress(stack.Node().FindChild(jsii.String(id)), "IAM5", s.reason, s.pattern)
		}
	}
}

// suppress lets a rule be broken, by what is of one of the patterns if there are some.
func suppress(of constructs.IConstruct, rule, reason string, patterns ...string) {
	s := &cdknag.NagPackSuppression{Id: jsii.String("AwsSolutions-" + rule), Reason: jsii.String(reason)}
	if len(patterns) > 0 {
		var to []any
		for _, p := range patterns {
			to = append(to, &cdknag.RegexAppliesTo{Regex: jsii.String("/" + p + "/")})
		}
		s.AppliesTo = &to
	}
	cdknag.NagSuppressions_AddResourceSuppressions(of, &[]*cdknag.NagPackSuppression{s}, nil)
}

// problems are the errors and warnings that constructs and rules have left in an assembly.
func problems(dir string) ([]string, error) {
	asm, err := assembly.Read(dir)
	if err != nil {
		return nil, fmt.Errorf("reading what was synthesized: %w", err)
	}
	var found []string
	for _, stack := range asm.Stacks {
		for _, m := range stack.Messages {
			if m.Level != assembly.LevelInfo {
				found = append(found, fmt.Sprintf("%s: %s: %s", m.Level, m.Path, m.Text))
			}
		}
	}
	return found, nil
}
