package lambda

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"regexp"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// The modules that CloudFormation puts beside inline code which loads them: they answer for a custom resource.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cfn-lambda-function-code-cfnresponsemodule.html
var (
	//go:embed cfn-response.js
	responseNode []byte
	//go:embed cfnresponse.py
	responsePython []byte

	loadsNode   = regexp.MustCompile(`['"]cfn-response['"]`)
	loadsPython = regexp.MustCompile(`(?m)^\s*(import|from)\b.*\bcfnresponse\b`)
)

// inlineFile is the name of the file that inline code becomes; "" where the runtime takes none.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-lambda-function-code.html
func inlineFile(runtime string) string {
	switch {
	case strings.HasPrefix(runtime, "nodejs"):
		return "index.js"
	case strings.HasPrefix(runtime, "python"):
		return "index.py"
	}
	return ""
}

// pack makes the archive of inline code. The same code makes the same bytes, so that the service sees no change.
func pack(code, runtime string) ([]byte, error) {
	name := inlineFile(runtime)
	files := map[string][]byte{name: []byte(code)}
	order := []string{name}
	switch {
	case name == "":
		return nil, direct.Invalid("code can be inline for Node.js and Python only")
	case name == "index.js" && loadsNode.MatchString(code):
		files["cfn-response.js"], order = responseNode, append(order, "cfn-response.js")
	case name == "index.py" && loadsPython.MatchString(code):
		files["cfnresponse.py"], order = responsePython, append(order, "cfnresponse.py")
	}
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, name := range order {
		header := zip.FileHeader{Name: name, Method: zip.Deflate}
		header.SetMode(0o644)
		w, err := archive.CreateHeader(&header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
