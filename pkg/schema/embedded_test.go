package schema

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLookupKnowsServiceTypesAndCustomResources(t *testing.T) {
	for _, name := range []string{"AWS::SQS::Queue", "AWS::CloudFormation::Stack", "AWS::CloudFormation::WaitConditionHandle",
		"AWS::CloudFormation::CustomResource", "Custom::Anything", "AWS::CDK::Metadata"} {
		if got, found := Lookup(name); !found || got.Name != name {
			t.Errorf("Lookup(%q) = %v, %v", name, got, found)
		}
	}
	for _, name := range []string{"", "AWS::SQS::Queu", "Custom::", "aws::sqs::queue", "AWS::Foo::Bar"} {
		if _, found := Lookup(name); found {
			t.Errorf("Lookup(%q) found a type", name)
		}
	}
}

func TestIndexIsCompleteAndSmall(t *testing.T) {
	names := Names()
	if len(names) < 1700 || !slices.IsSorted(names) {
		t.Errorf("%d names, sorted: %v", len(names), slices.IsSorted(names))
	}
	if size := len(typesFile); size >= 3<<20 {
		t.Errorf("the index takes %d bytes", size)
	}
	sources := Sources()
	if sources.ServiceSpec == "" || sources.CfnLint == "" || sources.Region == "" {
		t.Errorf("the index does not say what it is made from: %+v", sources)
	}
	if _, err := time.Parse(time.RFC3339, sources.SchemaDate); err != nil {
		t.Errorf("schema date: %v", err)
	}
}

func TestEveryTypeDecodesAndIsClosed(t *testing.T) {
	for _, name := range Names() {
		got := mustLookup(t, name)
		if got.Name != name {
			t.Errorf("%s decodes as %s", name, got.Name)
		}
		var check func(where string, p *Property)
		check = func(where string, p *Property) {
			switch p.Kind {
			case KindObject:
				if got.Definitions[p.Ref] == nil {
					t.Errorf("%s %s: definition %q is missing", name, where, p.Ref)
				}
			case KindList, KindMap:
				if p.Elem == nil {
					t.Errorf("%s %s: a %s of nothing", name, where, p.Kind)
					return
				}
				check(where+"/*", p.Elem)
			case KindUnion:
				if len(p.Alternatives) < 2 {
					t.Errorf("%s %s: a choice of %d", name, where, len(p.Alternatives))
				}
				for _, alternative := range p.Alternatives {
					check(where, alternative)
				}
			case KindString, KindInteger, KindNumber, KindBoolean, KindJSON:
			default:
				t.Errorf("%s %s: kind %q", name, where, p.Kind)
			}
		}
		definition := func(where string, d *Definition) {
			for property, p := range d.Properties {
				check(where+property, p)
			}
			for _, required := range d.Required {
				if d.Properties[required] == nil {
					t.Errorf("%s %s requires %s, which it does not have", name, where, required)
				}
			}
		}
		definition("", &got.Definition)
		for id, d := range got.Definitions {
			definition(id+".", d)
		}
		for attribute, p := range got.Attributes {
			check(attribute, p)
		}
	}
}

// Paths that lead nowhere would never match a change.
func TestVerdictPathsLeadSomewhere(t *testing.T) {
	paths, lost := 0, 0
	for _, name := range Names() {
		got := mustLookup(t, name)
		for _, path := range slices.Concat(got.CreateOnly, got.ConditionalCreateOnly, got.WriteOnly, got.ReadOnly) {
			paths++
			if got.At(elements(path)) == nil {
				lost++
				t.Logf("%s: nothing at %s", name, path)
			}
		}
	}
	if lost*100 > paths {
		t.Errorf("%d of %d paths lead nowhere", lost, paths)
	}
}

func TestLookupIsLazyAndShared(t *testing.T) {
	index, err := Open(typesFile)
	if err != nil {
		t.Fatal(err)
	}
	decoded := func() (n int) {
		index.types.Range(func(any, any) bool { n++; return true })
		return n
	}
	if n := decoded(); n != 0 {
		t.Errorf("opening decoded %d types", n)
	}
	var all sync.WaitGroup
	results := make([]*Type, 16)
	for i := range results {
		all.Go(func() {
			results[i], _ = index.Lookup("AWS::S3::Bucket")
			index.Lookup(index.Names()[i])
		})
	}
	all.Wait()
	for _, got := range results {
		if got == nil || got != results[0] {
			t.Error("concurrent lookups answer with different types")
		}
	}
	if n := decoded(); n != len(results)+1 {
		t.Errorf("%d types decoded for %d asked", n, len(results)+1)
	}
}

func TestOpenRefusesDamagedData(t *testing.T) {
	for _, damaged := range [][]byte{nil, []byte("SLPYARC1"), typesFile[:len(typesFile)-1], slices.Concat([]byte("x"), typesFile)} {
		if _, err := Open(damaged); err == nil {
			t.Errorf("%d damaged bytes opened", len(damaged))
		}
	}
}

func TestSuggestions(t *testing.T) {
	for name, want := range map[string]string{
		"AWS::SQS::Queu":          "AWS::SQS::Queue",
		"AWS::Lamda::Function":    "AWS::Lambda::Function",
		"aws::s3::bucket":         "AWS::S3::Bucket",
		"AWS::DynamoDb::Tables":   "AWS::DynamoDB::Table",
		"AWS::EC2::SecurityGroop": "AWS::EC2::SecurityGroup",
	} {
		if got := Suggest(name); len(got) == 0 || got[0] != want || len(got) > 3 {
			t.Errorf("Suggest(%q) = %v, want %s first", name, got, want)
		}
	}
	if got := Suggest("Something::Else::Entirely"); len(got) != 0 {
		t.Errorf("a name like no other suggests %v", got)
	}
	queue := mustLookup(t, "AWS::SQS::Queue")
	for name, want := range map[string]string{"VisibilityTimeOut": "VisibilityTimeout", "Tag": "Tags", "Colour": ""} {
		if got := queue.SuggestProperty(nil, name); got != want {
			t.Errorf("SuggestProperty(%q) = %q, want %q", name, got, want)
		}
	}
	bucket := mustLookup(t, "AWS::S3::Bucket")
	rule := bucket.Definitions[bucket.At(elements("LifecycleConfiguration/Rules/0")).Ref]
	if got := bucket.SuggestProperty(rule, "ExpirationInDay"); got != "ExpirationInDays" {
		t.Errorf("in a lifecycle rule: %q", got)
	}
	if got := queue.SuggestAttribute("ARN"); got != "Arn" {
		t.Errorf("SuggestAttribute(ARN) = %q", got)
	}
}

// BenchmarkLookupCold is one process's first question: open the embedded index and decode one large type.
func BenchmarkLookupCold(b *testing.B) {
	for b.Loop() {
		index, err := Open(typesFile)
		if err != nil {
			b.Fatal(err)
		}
		if got, found := index.Lookup("AWS::EC2::Instance"); !found || !strings.HasPrefix(got.Name, "AWS::") {
			b.Fatal("not found")
		}
	}
}

func BenchmarkLookupWarm(b *testing.B) {
	for b.Loop() {
		if _, found := Lookup("AWS::EC2::Instance"); !found {
			b.Fatal("not found")
		}
	}
}
