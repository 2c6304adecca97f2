package sandbox

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
)

// secretType is the type of a secret of Secrets Manager.
const secretType = "AWS::SecretsManager::Secret"

// SecretString returns the text of a secret, as GetSecretValue would: what it was made with, or a text that was
// generated for it. id is its name, its ARN, or its ARN without the six random characters
// (https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html). A *Refusal with the code
// ResourceNotFoundException when there is no such secret, or it has no text.
func (s *Sandbox) SecretString(ctx context.Context, caller Caller, id string) (string, error) {
	rows, err := s.db.read.QueryContext(ctx, `SELECT `+resourceColumns+` FROM resources WHERE type = ? AND account = ? AND region = ?`,
		secretType, caller.Account, caller.scopeOf(secretType))
	if err != nil {
		return "", fmt.Errorf("reading a simulated secret: %w", err)
	}
	var text string
	found := false
	now := s.now()
	err = eachRow(rows, func(rows *sql.Rows) error {
		r, err := scanResource(rows.Scan)
		if err != nil {
			return err
		}
		model, ok := r.visible(now)
		if !ok || model["Name"] != id && r.identifier != id && (!strings.HasPrefix(id, "arn:") || !isSuffix(r.identifier, id)) {
			return nil
		}
		text, found = secretText(r.identifier, model)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("reading a simulated secret: %w", err)
	}
	if !found {
		return "", refuse(codeNotFound, "Secrets Manager can't find the specified secret.")
	}
	return text, nil
}

// isSuffix reports whether an ARN is another one and its six random characters.
func isSuffix(arn, partial string) bool {
	rest, ok := strings.CutPrefix(arn, partial+"-")
	return ok && len(rest) == 6
}

func secretText(arn string, model map[string]any) (string, bool) {
	if text, ok := model["SecretString"].(string); ok {
		return text, true
	}
	// A secret that is made without text, or with GenerateSecretString, gets a generated one: always the same.
	how, ok := model["GenerateSecretString"].(map[string]any)
	if !ok {
		return "", false
	}
	length := 32
	if n, ok := how["PasswordLength"].(json.Number); ok {
		if v, err := n.Int64(); err == nil && v > 0 {
			length = int(min(v, 4096))
		}
	}
	var password strings.Builder
	for i := 0; password.Len() < length; i++ {
		fmt.Fprintf(&password, "%x", sha256.Sum256(fmt.Appendf(nil, "%s/%d", arn, i)))
	}
	generated := password.String()[:length]
	key, ok := how["GenerateStringKey"].(string)
	if !ok {
		return generated, true
	}
	template := map[string]any{}
	if text, ok := how["SecretStringTemplate"].(string); ok && json.Unmarshal([]byte(text), &template) != nil {
		return "", false
	}
	template[key] = generated
	body, err := json.Marshal(template)
	return string(body), err == nil
}
