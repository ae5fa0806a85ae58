package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// FieldManager owns the fields of the objects that `up` applies.
const FieldManager = "fairshard-cluster"

// Client talks to one API server as one user.
type Client struct {
	base string
	http *http.Client
}

// NewFromFiles returns a client for the server at base, for example
// https://127.0.0.1:6443. ca is PEM; the client's certificate and key are files.
func NewFromFiles(base string, ca []byte, certFile, keyFile string) (*Client, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("read certificate authority: no certificate in it")
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read client certificate: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
	}}
	return &Client{base: base, http: &http.Client{Transport: transport, Timeout: 30 * time.Second}}, nil
}

// StatusError is an answer other than 2xx.
type StatusError struct {
	Code int
	Body string
}

// Error holds the server's own words.
func (e *StatusError) Error() string { return fmt.Sprintf("server answered %d: %s", e.Code, e.Body) }

// Get reads path and decodes the JSON answer into out, unless out is nil.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	return c.do(ctx, http.MethodGet, path, nil, out)
}

// Object is a decoded manifest.
type Object = map[string]any

// Apply creates the object or changes it to what is given.
func (c *Client) Apply(ctx context.Context, obj Object) error {
	return c.apply(ctx, obj, "")
}

// DryRun asks the server to go through Apply, webhooks included, and store nothing.
func (c *Client) DryRun(ctx context.Context, obj Object) error {
	return c.apply(ctx, obj, "&dryRun=All")
}

func (c *Client) apply(ctx context.Context, obj Object, query string) error {
	path, err := Path(obj)
	if err != nil {
		return err
	}
	body, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	path += "?fieldManager=" + FieldManager + "&force=true" + query
	return c.do(ctx, http.MethodPatch, path, body, nil)
}

func (c *Client) do(ctx context.Context, method, path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request for %s: %w", path, err)
	}
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("call API server: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read answer for %s: %w", path, err)
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %w", method, path, &StatusError{Code: resp.StatusCode, Body: message(data)})
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("decode answer for %s: %w", path, err)
	}
	return nil
}

// message takes the text out of a Status object, or the whole answer.
func message(data []byte) string {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(data, &status) == nil && status.Message != "" {
		return status.Message
	}
	return string(data)
}
