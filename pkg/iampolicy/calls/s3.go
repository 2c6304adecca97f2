package calls

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/iampolicy"
)

// s3 reads a request to S3, whose bucket is in the host's name or in the path.
func (q request) s3() ([]iampolicy.Call, error) {
	bucket, key := q.bucketAndKey()
	if bucket == "" {
		return nil, fmt.Errorf("the request %s %s to S3 names no bucket", q.Method, q.URL.Path)
	}
	query := q.URL.Query()
	one := func(action string) []iampolicy.Call {
		resource := "arn:" + q.place.Partition + ":s3:::" + bucket
		if key != "" {
			resource += "/" + key
		}
		c := call("s3:"+action, resource)
		c[0].Context = q.owner()
		return c
	}
	has := func(name string) bool { return query.Has(name) }
	if key == "" {
		switch {
		case q.Method == http.MethodHead, q.Method == http.MethodGet && has("list-type"):
			c := one("ListBucket")
			if has("prefix") {
				c[0].Context["s3:prefix"] = []string{query.Get("prefix")}
			}
			return c, nil
		case q.Method == http.MethodGet && has("uploads"):
			return one("ListBucketMultipartUploads"), nil
		case q.Method == http.MethodGet && has("location"):
			return one("GetBucketLocation"), nil
		case q.Method == http.MethodPost && has("delete"):
			return q.deletions(bucket)
		}
		if action := bucketSettings(q.Method, q.setting()); action != "" {
			return one(action), nil
		}
		return nil, fmt.Errorf("the request %s %s?%s to S3 is not known", q.Method, q.URL.Path, q.URL.RawQuery)
	}
	switch {
	case q.Method == http.MethodGet && has("uploadId"):
		return one("ListMultipartUploadParts"), nil
	case q.Method == http.MethodGet, q.Method == http.MethodHead:
		if has("versionId") {
			return one("GetObjectVersion"), nil
		}
		return one("GetObject"), nil
	case q.Method == http.MethodPut && q.Header.Get("X-Amz-Copy-Source") == "",
		q.Method == http.MethodPost && (has("uploads") || has("uploadId")):
		return one("PutObject"), nil
	case q.Method == http.MethodDelete && has("uploadId"):
		return one("AbortMultipartUpload"), nil
	case q.Method == http.MethodDelete && has("versionId"):
		return one("DeleteObjectVersion"), nil
	case q.Method == http.MethodDelete:
		return one("DeleteObject"), nil
	}
	return nil, fmt.Errorf("the request %s %s?%s to S3 is not known", q.Method, q.URL.Path, q.URL.RawQuery)
}

// owner is the account whose bucket is meant.
func (q request) owner() map[string][]string {
	owner := q.Header.Get("X-Amz-Expected-Bucket-Owner")
	if owner == "" {
		owner = q.place.Account
	}
	return map[string][]string{"aws:ResourceAccount": {owner}}
}

func (q request) bucketAndKey() (bucket, key string) {
	path := strings.TrimPrefix(q.URL.Path, "/")
	host := q.Host
	if host == "" {
		host = q.URL.Host
	}
	if name, rest, ok := strings.Cut(host, ".s3."); ok && name != "" && strings.Contains(rest, ".") {
		return name, path
	}
	bucket, key, _ = strings.Cut(path, "/")
	return bucket, key
}

// deletions reads a request that deletes several objects.
func (q request) deletions(bucket string) ([]iampolicy.Call, error) {
	var in struct {
		Object []struct{ Key, VersionId string }
	}
	if err := xml.Unmarshal(q.body, &in); err != nil {
		return nil, fmt.Errorf("reading the objects of a deletion: %w", err)
	}
	var out []iampolicy.Call
	for _, o := range in.Object {
		action := "s3:DeleteObject"
		if o.VersionId != "" {
			action = "s3:DeleteObjectVersion"
		}
		out = append(out, iampolicy.Call{Action: action, Resource: "arn:" + q.place.Partition + ":s3:::" + bucket + "/" + o.Key, Context: q.owner()})
	}
	return out, nil
}

// Absent returns the calls that S3 makes of the answer "404" to a request for an object: who may not list the bucket
// is told 403 (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html).
func Absent(r *http.Request, in Place) []iampolicy.Call {
	s, ok := SignatureOf(r)
	if !ok || s.Service != "s3" || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	if in.Partition == "" {
		in.Partition = "aws"
	}
	q := request{Request: r, place: in, region: s.Region}
	bucket, key := q.bucketAndKey()
	if key == "" {
		return nil
	}
	return []iampolicy.Call{{Action: "s3:ListBucket", Resource: "arn:" + in.Partition + ":s3:::" + bucket, Context: q.owner()}}
}
