package sink

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// Limits of a webhook.
const (
	postTimeout   = 30 * time.Second // for one attempt, from the look-up of the name to the end of the answer
	firstWait     = time.Second      // after the first failure; it doubles
	lastWait      = 5 * time.Minute
	mostAskedWait = time.Hour // that a receiver can ask for with Retry-After
	maxAnswer     = 64 << 10  // bytes of the body of an answer that are read
	maxSaid       = 200       // and that are logged

	minSecret, maxSecret = 24, 64 // bytes of a secret
	maxSecrets           = 4
)

// Webhook says where events are posted to, and how.
type Webhook struct {
	URL      string
	Secrets  string // whsec_ and base64, one or several with white space between them: each signs
	Position string // the file that keeps the place, with slashes
	Feed     Feed
	// AllowPrivate allows http, and addresses that only this machine or its network reaches.
	AllowPrivate bool
	Log          *slog.Logger

	fs   vfs.FS                               // of tests; nil: the real one
	wait func(context.Context, time.Duration) // of tests; nil: step.Pause
}

// webhook is a Target that posts events as https://www.standardwebhooks.com says.
type webhook struct {
	o        Webhook
	secrets  [][]byte
	position positionFile
	client   http.Client
}

// NewWebhook returns a target that posts events. An error is a *kuji.Error of CodeInvalid.
func NewWebhook(o Webhook) (Target, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, invalid("to", "not the URL of a webhook: expected https://HOST/PATH")
	case u.Scheme == "http" && !o.AllowPrivate:
		return nil, invalid("to", "http is readable on its way: expected https://… (http needs --allow-private)")
	case u.User != nil:
		return nil, invalid("to", "a URL with a name and a password: the signature tells the receiver who sends")
	}
	w := &webhook{o: o}
	w.o.fs = cmp.Or(o.fs, vfs.OS())
	if w.secrets, err = parseSecrets(o.Secrets); err != nil {
		return nil, err
	}
	if w.o.wait == nil {
		w.o.wait = step.Pause
	}
	w.position = positionFile{w.o.fs, o.Position, o.Feed}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if !o.AllowPrivate {
		dialer.Control = publicOnly
	}
	w.client = http.Client{
		Timeout: postTimeout,
		// No proxy: it would dial in our place, and nobody would look at the addresses.
		Transport:     &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxAnswer, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return w, nil
}

func invalid(field, format string, args ...any) error {
	return &kuji.Error{Code: kuji.CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// parseSecrets returns the bytes of secrets. It never says one.
func parseSecrets(text string) (secrets [][]byte, err error) {
	for i, word := range strings.Fields(text) {
		body, ok := strings.CutPrefix(word, "whsec_")
		raw, err := base64.StdEncoding.DecodeString(body)
		if !ok || err != nil || len(raw) < minSecret || len(raw) > maxSecret {
			return nil, invalid("secret", "secret %d: expected whsec_ and the base64 of %d to %d random bytes", i+1, minSecret, maxSecret)
		}
		secrets = append(secrets, raw)
	}
	if len(secrets) == 0 || len(secrets) > maxSecrets {
		return nil, invalid("secret", "%d secrets: expected 1 to %d", len(secrets), maxSecrets)
	}
	return secrets, nil
}

// notPublic are the networks, besides those that netip knows, which no public name should lead to.
var notPublic = func() (all []netip.Prefix) {
	for _, s := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "fec0::/10", // some lead to addresses of IPv4
	} {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}()

// privateError is a receiver that only this machine or its network reaches.
type privateError struct{ addr netip.Addr }

func (e privateError) Error() string {
	return fmt.Sprintf("the receiver's address %s is not a public one (--allow-private allows that)", e.addr)
}

// publicOnly refuses to dial other addresses than public ones. It sees the address that is dialled,
// after every look-up of a name, so that no answer of a name server leads around it.
func publicOnly(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := at.Addr().Unmap().WithZone("")
	public := ip.IsGlobalUnicast() && !ip.IsPrivate()
	for _, p := range notPublic {
		public = public && !p.Contains(ip)
	}
	if !public {
		return privateError{ip}
	}
	return nil
}

func (w *webhook) Place(context.Context) (Place, error) { return w.position.load() }

// message is the body of a post, as the standard proposes.
type message struct {
	Type      string          `json:"type"`
	Timestamp time.Time       `json:"timestamp"` // of the last event
	Data      json.RawMessage `json:"data"`
}

type messageData struct {
	Realm  string        `json:"realm"`
	Events []kuji.Record `json:"events"`
}

func (w *webhook) Deliver(ctx context.Context, b *Batch) error {
	if len(b.Events) > 0 {
		data, err := json.Marshal(messageData{w.o.Feed.Realm, b.Events})
		if err != nil {
			return err
		}
		body, err := json.Marshal(message{"kuji.events", time.UnixMilli(b.Events[len(b.Events)-1].Time).UTC(), data})
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data) // the same events have the same id, after a crash, too
		if err := w.deliver(ctx, "msg_"+hex.EncodeToString(sum[:16]), body); err != nil {
			return err
		}
	}
	return w.position.save(b.To)
}

// deliver posts a message until it has arrived.
func (w *webhook) deliver(ctx context.Context, id string, body []byte) error {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		asked, err := w.post(ctx, id, body)
		if err == nil || kuji.CodeOf(err) == kuji.CodeConflict {
			return err
		}
		again := max(asked, wait/2+rand.N(wait/2))
		w.o.Log.Warn("the webhook did not take the events", "error", err, "again_in", again.Round(time.Millisecond))
		w.o.wait(ctx, again)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// final is a failure that another attempt does not mend.
func final(err error) error {
	return &kuji.Error{Code: kuji.CodeConflict, Message: "the webhook did not take the events, and nothing was left out: start again when it does", Err: err}
}

// post makes one attempt, which the end of ctx does not break off. asked is the pause that the receiver wants.
func (w *webhook) post(ctx context.Context, id string, body []byte) (asked time.Duration, err error) {
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, w.o.URL, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "kuji-feed")
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", now)
	req.Header.Set("Webhook-Signature", w.sign(id, now, body))
	resp, err := w.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL, which may be a secret
		}
		return 0, dialled(err)
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // the status has said what counts
	_ = resp.Body.Close()
	return retryAfter(resp.Header.Get("Retry-After"), time.Now()), outcome(resp, said)
}

// dialled says what it means that there is no answer.
func dialled(err error) error {
	_, private := errors.AsType[privateError](err)
	if _, distrusted := errors.AsType[*tls.CertificateVerificationError](err); private || distrusted {
		return final(err)
	}
	return err
}

// outcome says what an answer means.
func outcome(resp *http.Response, said []byte) error {
	code := resp.StatusCode
	if code >= 200 && code < 300 {
		return nil
	}
	err := fmt.Errorf("it answered %d: %.*q", code, maxSaid, said)
	switch {
	case code >= 300 && code < 400:
		return final(fmt.Errorf("it answered %d: a redirect is not followed; give the URL that it leads to", code))
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		return err
	}
	return final(err)
}

// retryAfter reads the header of the name: seconds or a time.
func retryAfter(text string, now time.Time) time.Duration {
	var d time.Duration
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		d = time.Duration(n) * time.Second
	} else if t, err := http.ParseTime(text); err == nil {
		d = t.Sub(now)
	}
	return min(max(d, 0), mostAskedWait)
}

// sign returns the signatures of a message, one for each secret.
func (w *webhook) sign(id, timestamp string, body []byte) string {
	var all []string
	for _, secret := range w.secrets {
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " ")
}
