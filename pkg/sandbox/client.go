package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Client calls the direct API of a sandbox that serves on Endpoint, as an account in a region. Its errors are
// *Refusal where the sandbox turned the request down; a failed operation is no error but a ProgressEvent.
type Client struct {
	Endpoint string
	Account  string       // DefaultAccount when empty
	Region   string       // DefaultRegion when empty
	HTTP     *http.Client // one of NewHTTPClient, shared; http.DefaultClient when nil
}

// Connections is how many idle connections a client of NewHTTPClient keeps: more than the calls that a run has in
// flight at the default concurrency.
const Connections = 64

// NewHTTPClient returns a client for many concurrent calls to one sandbox. It is meant to be shared: for the direct
// API as Client.HTTP and for AWS clients as their HTTPClient. (http.DefaultClient keeps two connections per host
// and opens one for nearly every other call.) Proxies are not asked: a sandbox serves on the loopback interface.
func NewHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:  (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		MaxIdleConns: Connections, MaxIdleConnsPerHost: Connections, IdleConnTimeout: 30 * time.Second,
	}}
}

// Create starts to make a resource. label is what the caller would call it, for ids that are the caller's choice; it and
// clientToken may be empty.
func (c *Client) Create(ctx context.Context, typeName, label string, properties map[string]any, clientToken string) (ProgressEvent, error) {
	var e ProgressEvent
	return e, c.call(ctx, "Create", directInput{Type: typeName, Label: label, Properties: properties, ClientToken: clientToken}, &e)
}

// Update starts to change a resource; properties are all desired properties, known those that the caller knows the resource
// by: some services call resources of different owners the same.
func (c *Client) Update(ctx context.Context, typeName, identifier string, known, properties map[string]any, clientToken string) (ProgressEvent, error) {
	var e ProgressEvent
	return e, c.call(ctx, "Update", directInput{Type: typeName, Identifier: identifier, Known: known, Properties: properties, ClientToken: clientToken}, &e)
}

// Delete starts to delete a resource; known is that of Update.
func (c *Client) Delete(ctx context.Context, typeName, identifier string, known map[string]any, clientToken string) (ProgressEvent, error) {
	var e ProgressEvent
	return e, c.call(ctx, "Delete", directInput{Type: typeName, Identifier: identifier, Known: known, ClientToken: clientToken}, &e)
}

// Snapshot takes a final snapshot of a resource of any type, under a name; the same again changes nothing. The
// refusal's code is ResourceNotFoundException when there is no resource.
func (c *Client) Snapshot(ctx context.Context, typeName, identifier, name string) error {
	return c.call(ctx, "Snapshot", directInput{Type: typeName, Identifier: identifier, Name: name}, &struct{}{})
}

// Status asks how far an operation is.
func (c *Client) Status(ctx context.Context, requestToken string) (ProgressEvent, error) {
	var e ProgressEvent
	return e, c.call(ctx, "Status", directInput{RequestToken: requestToken}, &e)
}

// Get reads a resource; known is that of Update. The refusal's code is ResourceNotFoundException when there is none.
func (c *Client) Get(ctx context.Context, typeName, identifier string, known map[string]any) (DirectResource, error) {
	var r DirectResource
	return r, c.call(ctx, "Get", directInput{Type: typeName, Identifier: identifier, Known: known}, &r)
}

// InvokeCustomResource invokes the simulated handler of a custom resource.
func (c *Client) InvokeCustomResource(ctx context.Context, event CustomResourceEvent) (CustomResourceResponse, error) {
	var r CustomResourceResponse
	return r, c.call(ctx, "InvokeCustomResource", directInput{Event: &event}, &r)
}

func (c *Client) call(ctx context.Context, operation string, in directInput, out any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Endpoint, bytes.NewReader([]byte(encode(in))))
	if err != nil {
		return fmt.Errorf("calling the sandbox: %w", err)
	}
	account, region := c.Account, c.Region
	if account == "" {
		account = DefaultAccount
	}
	if region == "" {
		region = DefaultRegion
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(directHeader, directPrefix+operation)
	// The sandbox reads the credential scope and checks no signature.
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+account+"/20000101/"+region+"/sandbox/aws4_request")
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("calling the sandbox: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading the sandbox's answer to %s: %w", operation, err)
	}
	if response.StatusCode != http.StatusOK {
		var e struct {
			Type    string `json:"__type"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(body, &e); err != nil || e.Type == "" {
			return fmt.Errorf("the sandbox answered %s with status %d", operation, response.StatusCode)
		}
		return &Refusal{Code: afterLast(e.Type, "#"), Message: e.Message}
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.UseNumber()
	if err := d.Decode(out); err != nil {
		return fmt.Errorf("reading the sandbox's answer to %s: %w", operation, err)
	}
	return nil
}
