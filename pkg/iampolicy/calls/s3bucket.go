package calls

import "net/http"

// bucketSettings are the actions of requests about a bucket itself, by method and the part of the query that names the
// setting; "" is the bucket. Their names are not those of the operations
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html).
func bucketSettings(method, setting string) string {
	switch method + " " + setting {
	case http.MethodPut + " ":
		return "CreateBucket"
	case http.MethodDelete + " ":
		return "DeleteBucket"
	case http.MethodGet + " policy":
		return "GetBucketPolicy"
	case http.MethodPut + " policy":
		return "PutBucketPolicy"
	case http.MethodGet + " encryption":
		return "GetEncryptionConfiguration"
	case http.MethodPut + " encryption":
		return "PutEncryptionConfiguration"
	case http.MethodGet + " versioning":
		return "GetBucketVersioning"
	case http.MethodPut + " versioning":
		return "PutBucketVersioning"
	case http.MethodGet + " lifecycle":
		return "GetLifecycleConfiguration"
	case http.MethodPut + " lifecycle":
		return "PutLifecycleConfiguration"
	case http.MethodGet + " publicAccessBlock":
		return "GetBucketPublicAccessBlock"
	case http.MethodPut + " publicAccessBlock":
		return "PutBucketPublicAccessBlock"
	}
	return ""
}

// setting is the part of a query that names a setting of a bucket; "" is the bucket itself.
func (q request) setting() string {
	for name := range q.URL.Query() {
		if name != "x-id" { // the SDK's own name of the operation
			return name
		}
	}
	return ""
}
