package cloudcontrol

import "sync"

// Cached makes the client of each account and region once: building one resolves endpoints, signers and
// middleware, and a new one shares no connection with the last. It is safe for concurrent use.
func Cached(build func(account, region string) API) func(account, region string) API {
	type scope struct{ account, region string }
	var mu sync.Mutex
	clients := map[scope]API{}
	return func(account, region string) API {
		mu.Lock()
		defer mu.Unlock()
		key := scope{account, region}
		client, ok := clients[key]
		if !ok {
			client = build(account, region)
			clients[key] = client
		}
		return client
	}
}
