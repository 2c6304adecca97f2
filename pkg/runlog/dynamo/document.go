package dynamo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// maxBody is how large a document may be inside its item, in bytes. DynamoDB's limit is 400 KB for the whole
// item (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html); keys and the
// members beside the document take part of it.
const maxBody = 350 << 10

// runObjects is the prefix of the objects that hold a run's oversized documents.
func runObjects(runID string) string { return "slipway/runs/" + runID + "/log/" }

// newMark returns a name that no other write has: an object's, a transaction's, a header version's.
func newMark() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// document makes the item of a document. One that is too large for an item is stored as an object first, under
// a name that nobody else writes, and the item points to it; that key is returned so that it can be discarded
// when the item is refused.
func (s *Store) document(ctx context.Context, v any, pk, sk, object string) (item map[string]types.AttributeValue, overflow string, err error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, "", fmt.Errorf("encoding it: %w", err)
	}
	body := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	item = key(pk, sk)
	if len(body) <= maxBody {
		item["body"] = text(string(body))
		return item, "", nil
	}
	if s.Objects == nil {
		return nil, "", fmt.Errorf("its %d bytes are too many for an item", len(body))
	}
	object += ".json"
	if _, err := s.Objects.Put(ctx, object, body, objectstore.Condition{}); err != nil {
		return nil, "", fmt.Errorf("storing it as object %s: %w", object, err)
	}
	item["object"] = text(object)
	return item, object, nil
}

// decode reads the document of an item.
func (s *Store) decode(ctx context.Context, item map[string]types.AttributeValue, v any) error {
	body := []byte(textOf(item, "body"))
	if object := textOf(item, "object"); object != "" {
		if s.Objects == nil {
			return fmt.Errorf("it is in object %s, and there is no object store", object)
		}
		o, err := s.Objects.Get(ctx, object)
		if err != nil {
			return fmt.Errorf("it is in object %s: %w", object, hideNotFound(err))
		}
		body = o.Body
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("decoding it: %w", err)
	}
	return nil
}

// discard removes the object of a document whose item was not written. An object that stays costs a little
// storage until the bucket's lifecycle removes the run's objects; it is never read.
func (s *Store) discard(ctx context.Context, object string) {
	if object == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = s.Objects.Delete(ctx, object, objectstore.Condition{})
}

// hideNotFound keeps a lost object from being taken for an entry that was never written.
func hideNotFound(err error) error {
	if errors.Is(err, objectstore.ErrNotFound) {
		return errors.New("the object is gone")
	}
	return err
}
