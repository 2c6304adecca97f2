package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/upload"
)

// archive is an upload that is being read.
type archive struct {
	object   *upload.Object
	reader   *upload.Reader
	computed bool
}

func (d *Desk) limits() upload.Limits {
	if d.Limits == (upload.Limits{}) {
		return upload.DefaultLimits()
	}
	return d.Limits
}

// open opens an archive, for as long as ctx lasts.
func (d *Desk) open(ctx context.Context, ref upload.Ref) (*archive, error) {
	object, err := upload.OpenObject(ctx, d.Bucket, d.Name, d.Account, ref)
	if err != nil {
		return nil, err
	}
	reader, err := upload.Open(object, object.Size, d.limits())
	if err != nil {
		return nil, err
	}
	return &archive{object: object, reader: reader}, nil
}

// assembly reads the cloud assembly in the archive. The paths of its assets become those in the archive, where the
// publisher finds them.
func (a *archive) assembly() (*assembly.Assembly, error) {
	asm, err := assembly.ReadFS(a.reader.FS())
	if err != nil {
		return nil, a.reason(err)
	}
	for _, s := range asm.Stacks {
		for i := range s.Assets {
			if s.Assets[i].Path == "" {
				continue
			}
			if s.Assets[i].Path, err = asm.Rel(s.Assets[i].Path); err != nil {
				return nil, fmt.Errorf("finding the source of an asset: %w", err)
			}
		}
	}
	return asm, nil
}

// reason is why the archive could not be used. The bucket may have failed where the assembly seems to lack a file.
func (a *archive) reason(err error) error {
	if failed := a.object.Err(); failed != nil {
		return failed
	}
	return err
}

// upload is how a request names the archive.
func (a *archive) upload() *run.Upload {
	return &run.Upload{UploadRef: run.UploadRef(a.object.Ref), Digest: a.reader.Digest(), Computed: a.computed}
}

// indexKey is where the index of an archive that came without one is kept.
func indexKey(runID string) string { return "slipway/runs/" + runID + "/index.json" }

// keepIndex stores a computed index: the publisher must not read all of the archive for it again.
func (d *Desk) keepIndex(ctx context.Context, runID string, a *archive) error {
	body, err := a.reader.Index()
	if err != nil {
		return err
	}
	_, err = d.Engine.Objects.Put(ctx, indexKey(runID), body, objectstore.Condition{IfNoneMatch: true})
	if err != nil && !errors.Is(err, objectstore.ErrPrecondition) {
		return fmt.Errorf("storing the index of the upload of run %s: %w", runID, err)
	}
	return nil
}

// Source returns where the sources of a request's assets are. Nothing is read before the first one is asked for.
func (d *Desk) Source(req run.Request) asset.Source {
	root := req.RunID
	if req.Root != "" {
		root = req.Root
	}
	return &source{desk: d, runID: root, from: *req.Upload}
}

// source reads assets out of an admitted archive, entry by entry.
type source struct {
	desk  *Desk
	runID string
	from  run.Upload
}

func (s *source) open(ctx context.Context) (*archive, error) {
	a, err := s.desk.open(ctx, upload.Ref(s.from.UploadRef))
	if err != nil {
		return nil, err
	}
	if s.from.Computed {
		obj, err := s.desk.Engine.Objects.Get(ctx, indexKey(s.runID))
		if err != nil {
			return nil, fmt.Errorf("reading the index of the upload of run %s: %w", s.runID, err)
		}
		if err := a.reader.Adopt(obj.Body); err != nil {
			return nil, err
		}
	}
	// Between admission and now nobody can have changed this version of the object; in a bucket without versions it
	// may have been replaced.
	return a, a.reader.Verify(s.from.Digest)
}

// Files implements asset.Source.
func (s *source) Files(ctx context.Context, path string) ([]asset.File, asset.Copy, error) {
	a, err := s.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	var out []asset.File
	for _, e := range a.reader.Files(path) {
		name := strings.TrimPrefix(e.Path, path+"/")
		out = append(out, asset.File{Name: name, Path: e.Path, Mode: e.Mode})
	}
	if len(out) == 0 {
		return nil, nil, fmt.Errorf("%s in the upload: %w", path, fs.ErrNotExist)
	}
	return out, func(ctx context.Context, w io.Writer, path string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := a.reader.Copy(w, path)
		return err
	}, nil
}
