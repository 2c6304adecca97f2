package secret

import (
	"context"
	"fmt"
	"strings"
)

// Filled lists the root runs whose id begins as given and whose vault is not empty. It looks at all objects of those
// runs, so what is given should be narrow: run ids begin with the time at which the run was asked for.
func (v *Vault) Filled(ctx context.Context, ids string) ([]string, error) {
	infos, err := v.Objects.List(ctx, runsPrefix+ids)
	if err != nil {
		return nil, fmt.Errorf("looking for vaults of runs %s…: %w", ids, err)
	}
	var out []string
	for _, info := range infos {
		root, of, _ := strings.Cut(strings.TrimPrefix(info.Key, runsPrefix), "/")
		if strings.HasPrefix(of, "vault/") && (len(out) == 0 || out[len(out)-1] != root) {
			out = append(out, root)
		}
	}
	return out, nil
}
