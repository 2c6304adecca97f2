package sandbox

import (
	"context"
	"database/sql"
	"maps"
	"path/filepath"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// viaDirect makes a resource through the direct API and returns its id there.
func (b *bench) viaDirect(typeName, label string, properties map[string]any) string {
	b.t.Helper()
	e, err := b.direct().Create(bg, typeName, label, properties, "")
	if err != nil {
		b.t.Fatalf("creating %s: %v", typeName, err)
	}
	if e = b.settled(e); e.OperationStatus != statusSuccess {
		b.t.Fatalf("creating %s: %s %s", typeName, e.ErrorCode, e.StatusMessage)
	}
	return e.Identifier
}

func TestBothDoorsLeadToOneResource(t *testing.T) {
	b := newBench(t, Options{})
	api := b.viaDirect("AWS::ApiGatewayV2::Api", "", map[string]any{"Name": "a", "ProtocolType": "HTTP"})
	id := b.viaDirect("AWS::ApiGatewayV2::Stage", "", map[string]any{"ApiId": api, "StageName": "prod"})
	if id != "prod" {
		t.Fatalf("the stage is called %s", id)
	}
	if model, err := b.get("AWS::ApiGatewayV2::Stage", api+"|prod"); err != nil || model["StageName"] != "prod" {
		t.Errorf("Cloud Control reads %v, %v", model, err)
	}
	if _, err := b.get("AWS::ApiGatewayV2::Stage", "prod"); codeOf(err) != codeNotFound {
		t.Errorf("Cloud Control finds it by half of its identifier: %v", err)
	}
	if list, err := b.s.List(bg, Filter{Type: "AWS::ApiGatewayV2::Stage"}); err != nil || len(list) != 1 || list[0].Identifier != "prod" {
		t.Errorf("the inventory: %+v, %v", list, err)
	}
	if e := b.create("AWS::ApiGatewayV2::Stage", `{"ApiId":"`+api+`","StageName":"prod"}`); e.ErrorCode != failureAlreadyExists {
		t.Errorf("made again through Cloud Control: %v", e.ErrorCode)
	}
	if e := b.delete("AWS::ApiGatewayV2::Stage", api+"|prod"); e.ErrorCode != "" {
		t.Errorf("deleting it through Cloud Control: %v", e.ErrorCode)
	}
	if _, err := b.direct().Get(bg, "AWS::ApiGatewayV2::Stage", "prod", nil); codeOf(err) != codeNotFound {
		t.Errorf("then the direct API answers %v", err)
	}
}

func TestResourcesOfOneNameAreToldApartByWhatTheyBelongTo(t *testing.T) {
	policy := func(role string) map[string]any {
		return map[string]any{"PolicyName": "p", "PolicyDocument": map[string]any{"Version": "2012-10-17"}, "Roles": []any{role}}
	}
	stage := func(api string) map[string]any { return map[string]any{"ApiId": api, "StageName": "prod"} }
	cases := []struct {
		typeName    string
		one, other  map[string]any
		third, more map[string]any
	}{
		{"AWS::IAM::Policy", policy("a"), policy("b"), policy("c"), map[string]any{"Groups": []any{"g"}}},
		{"AWS::ApiGatewayV2::Stage", stage("outside1"), stage("outside2"), stage("outside3"), map[string]any{"Description": "d"}},
	}
	for _, c := range cases {
		t.Run(c.typeName, func(t *testing.T) {
			b := newBench(t, Options{})
			d := b.direct()
			id := b.viaDirect(c.typeName, "", c.one)
			if same := b.viaDirect(c.typeName, "", c.other); same != id {
				t.Fatalf("they are called %s and %s", id, same)
			}
			if e, err := d.Create(bg, c.typeName, "", c.one, ""); err != nil || b.settled(e).ErrorCode != failureAlreadyExists {
				t.Errorf("one of the same owner: %v %v", e.ErrorCode, err)
			}
			changed := maps.Clone(c.other)
			maps.Copy(changed, c.more)
			if e, err := d.Update(bg, c.typeName, id, c.other, changed, ""); err != nil || b.settled(e).OperationStatus != statusSuccess {
				t.Fatalf("the update: %+v, %v", e, err)
			}
			for name := range c.more {
				first, err := d.Get(bg, c.typeName, id, c.one)
				if err != nil || first.Properties[name] != nil {
					t.Errorf("the update has changed the other one: %v, %v", first.Properties, err)
				}
				second, err := d.Get(bg, c.typeName, id, c.other)
				if err != nil || second.Properties[name] == nil {
					t.Errorf("the update has not changed it: %v, %v", second.Properties, err)
				}
			}
			if e, err := d.Delete(bg, c.typeName, id, c.third, ""); err != nil || b.settled(e).ErrorCode != failureNotFound {
				t.Errorf("deleting what belongs to nothing that is there: %+v, %v", e, err)
			}
			if e, err := d.Delete(bg, c.typeName, id, c.one, ""); err != nil || b.settled(e).OperationStatus != statusSuccess {
				t.Fatalf("the deletion: %+v, %v", e, err)
			}
			if _, err := d.Get(bg, c.typeName, id, c.one); codeOf(err) != codeNotFound {
				t.Errorf("after the deletion: %v", err)
			}
			if _, err := d.Get(bg, c.typeName, id, changed); err != nil {
				t.Errorf("the deletion took the other one: %v", err)
			}
		})
	}
}

func TestARuleOfASecurityGroupIsThereOnce(t *testing.T) {
	b := newBench(t, Options{})
	group := b.viaDirect("AWS::EC2::SecurityGroup", "", map[string]any{"GroupDescription": "d"})
	rule := func(cidr string) map[string]any {
		return map[string]any{"GroupId": group, "IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": cidr}
	}
	id := b.viaDirect("AWS::EC2::SecurityGroupIngress", "", rule("10.0.0.0/8"))
	if want := group + "|tcp|443|443|10.0.0.0/8"; id != want {
		t.Errorf("it is called %s, want %s", id, want)
	}
	if e, err := b.direct().Create(bg, "AWS::EC2::SecurityGroupIngress", "", rule("10.0.0.0/8"), ""); err != nil || b.settled(e).ErrorCode != failureAlreadyExists {
		t.Errorf("the same again: %+v, %v", e, err)
	}
	if e := b.create("AWS::EC2::SecurityGroupIngress", encode(rule("10.0.0.0/8"))); e.ErrorCode != failureAlreadyExists {
		t.Errorf("the same again through Cloud Control: %v", e.ErrorCode)
	}
	b.viaDirect("AWS::EC2::SecurityGroupIngress", "", rule("192.168.0.0/16"))
}

// The direct API is no way around the rules.
func TestTheDirectAPIIsAsStrictAsCloudControl(t *testing.T) {
	b := newBench(t, Options{})
	d := b.direct()
	refused := func(properties map[string]any) string {
		_, err := d.Create(bg, "AWS::SQS::Queue", "", properties, "")
		return codeOf(err)
	}
	for name, properties := range map[string]map[string]any{
		"unknown":    {"Nope": 1},
		"read-only":  {"QueueUrl": "https://example.com"},
		"wrong type": {"DelaySeconds": "5"},
	} {
		if got := refused(properties); got != codeValidation {
			t.Errorf("%s: %q", name, got)
		}
	}
	queue := b.viaDirect("AWS::SQS::Queue", "", map[string]any{"QueueName": "q"})
	if _, err := d.Update(bg, "AWS::SQS::Queue", queue, nil, map[string]any{"QueueName": "other"}, ""); codeOf(err) != codeNotUpdatable {
		t.Errorf("another name: %v", err)
	}
	if e, err := d.Create(bg, "AWS::SQS::Queue", "", map[string]any{"QueueName": "q"}, ""); err != nil || b.settled(e).ErrorCode != failureAlreadyExists {
		t.Errorf("the same name: %+v, %v", e, err)
	}
	vpc := b.viaDirect("AWS::EC2::VPC", "", map[string]any{"CidrBlock": "10.0.0.0/16"})
	subnet := b.viaDirect("AWS::EC2::Subnet", "", map[string]any{"VpcId": vpc, "CidrBlock": "10.0.0.0/24"})
	if e, err := d.Delete(bg, "AWS::EC2::VPC", vpc, nil, ""); err != nil || b.settled(e).ErrorCode != failureConflict {
		t.Errorf("a VPC with a subnet is deleted: %+v, %v", e, err)
	}
	if e, err := d.Delete(bg, "AWS::EC2::Subnet", subnet, nil, ""); err != nil || b.settled(e).ErrorCode != "" {
		t.Errorf("the subnet: %+v, %v", e, err)
	}
	association := map[string]any{"SubnetId": subnet, "RouteTableId": "rtb-00000000000000000"}
	if e, err := d.Create(bg, "AWS::EC2::SubnetRouteTableAssociation", "", association, ""); err != nil || b.settled(e).ErrorCode != failureNotFound {
		t.Errorf("a reference to what is gone: %+v, %v", e, err)
	}
}

func TestAnIdThatIsTheCallersChoiceSaysWhatTheCallerCallsIt(t *testing.T) {
	b := newBench(t, Options{})
	properties := map[string]any{"FunctionName": "outside", "Action": "lambda:InvokeFunction", "Principal": "s3.amazonaws.com"}
	id := b.viaDirect("AWS::Lambda::Permission", "Stack-Allow", properties)
	if !matches(`^Stack-Allow-[0-9a-f]{32}$`, id) {
		t.Errorf("it is called %s", id)
	}
	if r, err := b.direct().Get(bg, "AWS::Lambda::Permission", id, nil); err != nil || len(r.Attributes) != 1 || r.Attributes["Id"] != id {
		t.Errorf("its attributes: %v, %v", r.Attributes, err)
	}
}

// A file of an earlier release has resources whose records hold Cloud Control's identifiers, whichever door they came through.
func TestResourcesOfAnOlderFileAreCalledWhatTheyWereRecordedAs(t *testing.T) {
	dir := t.TempDir()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, DatabaseName))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		`CREATE TABLE resources (
			id INTEGER PRIMARY KEY, account TEXT NOT NULL, region TEXT NOT NULL, type TEXT NOT NULL, identifier TEXT NOT NULL,
			route TEXT NOT NULL, model TEXT NOT NULL, prior TEXT NOT NULL DEFAULT '', filled TEXT NOT NULL DEFAULT '',
			born INTEGER NOT NULL, changed INTEGER NOT NULL DEFAULT 0, gone INTEGER, UNIQUE (type, account, region, identifier))`,
		`INSERT INTO resources (account, region, type, identifier, route, model, filled, born) VALUES
			('123456789012', 'global', 'AWS::IAM::Policy', 'policy-0123456789abcdef', 'sdk',
			'{"Id":"policy-0123456789abcdef","PolicyName":"p","PolicyDocument":{},"Roles":["r"]}', '["Id"]', 0),
			('123456789012', 'us-east-1', 'AWS::ApiGatewayV2::Stage', 'api|prod', 'cc-api', '{"ApiId":"api","StageName":"prod"}', '[]', 0)`,
	} {
		if _, err := db.ExecContext(context.Background(), s); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second process finds the new layout
		b := openBench(t, dir, Options{})
		if r, err := b.direct().Get(bg, "AWS::IAM::Policy", "policy-0123456789abcdef", map[string]any{"Roles": []any{"r"}}); err != nil || r.Properties["PolicyName"] != "p" {
			t.Errorf("the policy: %+v, %v", r, err)
		}
		if model, err := b.get("AWS::ApiGatewayV2::Stage", "api|prod"); err != nil || model["StageName"] != "prod" {
			t.Errorf("the stage: %v, %v", model, err)
		}
		if err := b.s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b := openBench(t, dir, Options{})
	if e, err := b.direct().Delete(bg, "AWS::IAM::Policy", "policy-0123456789abcdef", nil, ""); err != nil || b.settled(e).OperationStatus != statusSuccess {
		t.Errorf("deleting the policy: %+v, %v", e, err)
	}
}

// The table's rules for the services' own APIs name what the schema has, and every property that tells resources apart exists.
func TestTheShapeTableCallsResourcesByWhatTheyHave(t *testing.T) {
	shapes, err := parseShapes(shapesTable)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, name := range sortedKeys(shapes) {
		s := shapes[name]
		if s.own == nil {
			continue
		}
		calls++
		typ, _ := schema.Lookup(name)
		for _, path := range s.own.of {
			if typ.At([]string{path}) == nil {
				t.Errorf("%s has no %s", name, path)
			}
		}
		if s.own.id == "" && len(s.own.answers) == 0 {
			t.Errorf("%s: nothing is said", name)
		}
	}
	if calls == 0 {
		t.Error("no type is called otherwise")
	}
}
