package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

var (
	safePlain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./:@?=&%+~-]*[A-Za-z0-9_/-]$`)
	// What a path or query may hold that lets somebody in.
	tellingTail   = regexp.MustCompile(`(?i)(pass|pwd|psw|psd|pw=|\bp=|token|secret|key|auth|login|user|usr|cred|sess|sid=|sig=)`)
	urlLogin      = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s:/]*):(\S*)@`) // a user may be an address of mail
	cameraURL     = regexp.MustCompile(`(?i)rtsps?://\S+`)
	saidInComment = regexp.MustCompile(`(?i)((?:pass(?:word|wort|wd|phrase|code)?|password_hash|pwd|psw|psd|pw|secret|token|key)["']?[ \t]*[:=][ \t]*)(\S.*)$`)
	anyHash       = regexp.MustCompile(`\$argon2[a-z]*\$\S+`)
	onlyVariables = regexp.MustCompile(`^(\$\{[A-Za-z_][A-Za-z0-9_]*\})+$`)
)

// errNotFound is a text in which values are not where the parser says.
var errNotFound = errors.New("the places of its secrets cannot be told; write it in a plainer form of YAML")

// edit puts a text in the place of another one.
type edit struct {
	from, to int
	text     string
}

// WithoutSecrets gives the text with LeftOut in place of each secret, comments
// and layout kept, and the keys that this concerns. References, as ${NAME} and
// {file: …}, stay: they are no secrets.
func (o *Outline) WithoutSecrets() (text []byte, keys []string, err error) {
	var edits []edit
	var hidden []string
	for _, l := range o.leaves {
		old, ok := scalarText(l.node)
		if !ok {
			old = l.node.GetToken().Value
		}
		shall := masking(l, old)
		if shall == old {
			continue
		}
		e, err := o.replace(l, shall)
		if err != nil {
			return nil, nil, err
		}
		edits, keys = append(edits, e), append(keys, l.key)
		for _, part := range secretParts(old, shall) {
			hidden = append(hidden, part)
			if plain, err := url.PathUnescape(part); err == nil && plain != part {
				hidden = append(hidden, plain)
			}
		}
	}
	comments, err := o.commentEdits(hidden)
	if err != nil {
		return nil, nil, err
	}
	text = o.apply(append(edits, comments...))
	return text, unique(keys), o.verify(text)
}

// verify reads a text without secrets again: it has the same values but for
// those, and nothing that would have to be left out.
func (o *Outline) verify(text []byte) error {
	again, err := Examine(text, "")
	if err != nil || len(again.leaves) != len(o.leaves) {
		return errNotFound
	}
	for i, l := range again.leaves {
		was, _ := scalarText(o.leaves[i].node)
		is, ok := scalarText(l.node)
		if !ok {
			is, was = l.node.GetToken().Value, o.leaves[i].node.GetToken().Value
		}
		if is != masking(l, is) || is != masking(o.leaves[i], was) {
			return errNotFound
		}
	}
	return nil
}

// masking is what stands for a value in a text without secrets.
func masking(l leaf, text string) string {
	switch {
	case l.file:
		return text
	case !l.secret:
		return urlLogin.ReplaceAllStringFunc(text, maskLogin)
	case text == "" || onlyVariables.MatchString(text):
		return text
	case strings.HasSuffix(l.key, ".url"):
		return maskURL(text)
	}
	return LeftOut
}

func maskLogin(login string) string {
	if m := urlLogin.FindStringSubmatch(login); m[2] != "" && !onlyVariables.MatchString(m[2]) {
		return m[1] + ":" + LeftOut + "@"
	}
	return login
}

// maskURL hides the password of a URL, and a path or query that seems to hold
// one.
func maskURL(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return LeftOut // whatever it is
	}
	login, host := "", rest
	// The last @, as a password may hold one, and a / before it.
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		login, host = rest[:i], rest[i+1:]
		user, password, has := strings.Cut(login, ":")
		if has && password != "" && !onlyVariables.MatchString(password) {
			login = user + ":" + LeftOut
		}
		login += "@"
	}
	if i := strings.IndexAny(host, "/?#"); i >= 0 && tellingTail.MatchString(host[i:]) {
		host = host[:i] + "/" + LeftOut
	}
	return scheme + "://" + login + host
}

// secretParts are the pieces of a text that its masked form lacks.
func secretParts(old, masked string) []string {
	head, _, ok := strings.Cut(masked, LeftOut)
	if !ok || !strings.HasPrefix(old, head) {
		return []string{old}
	}
	_, tail, _ := strings.Cut(masked, LeftOut)
	rest := old[len(head):]
	if part, ok := strings.CutSuffix(rest, tail); ok && !strings.Contains(tail, LeftOut) {
		return []string{part}
	}
	return []string{rest}
}

// commentEdits hide what comments tell: settings that were commented out, and
// secrets that are in use. Comments of the reference file tell nothing.
func (o *Outline) commentEdits(hidden []string) (edits []edit, err error) {
	known := map[string]bool{}
	for line := range strings.Lines(string(reference)) {
		known[strings.TrimSpace(line)] = true
	}
	for _, t := range o.tokens {
		if t.Type != token.CommentType {
			continue
		}
		// It goes to the end of its line, whatever its column.
		old := "#" + strings.TrimRight(t.Value, "\r\n")
		text, from, ok := o.line(t)
		if !ok || !strings.HasSuffix(text, old) {
			return nil, errNotFound
		}
		from += len(text) - len(old)
		if known[strings.TrimSpace(old)] {
			continue
		}
		if text := maskComment(old, hidden); text != old {
			edits = append(edits, edit{from, from + len(old), text})
		}
	}
	return edits, nil
}

func maskComment(text string, hidden []string) string {
	text = urlLogin.ReplaceAllStringFunc(text, maskLogin)
	text = cameraURL.ReplaceAllStringFunc(text, maskURL)
	text = anyHash.ReplaceAllLiteralString(text, LeftOut)
	if m := saidInComment.FindStringSubmatchIndex(text); m != nil {
		value := strings.TrimSpace(text[m[4]:m[5]])
		empty := value == `""` || value == "''" || strings.HasPrefix(value, "{file") || onlyVariables.MatchString(strings.Trim(value, `"'`))
		if !empty {
			text = text[:m[4]] + LeftOut
		}
	}
	const word = 4 // shorter ones are part of ordinary words
	for _, h := range hidden {
		if len(h) >= word {
			text = strings.ReplaceAll(text, h, LeftOut)
		}
	}
	return text
}

// FillIn puts secrets of a present configuration, which may be nil, in the place
// of those that a backup has left out: where the same key has one. It gives the
// keys that were filled in and those that were not.
func (o *Outline) FillIn(present *Outline) (text []byte, kept, missing []string, err error) {
	there := map[string]leaf{}
	if present != nil {
		for _, l := range present.leaves {
			there[l.key] = l
		}
	}
	var edits []edit
	for _, l := range o.leaves {
		masked, _ := scalarText(l.node)
		if !strings.Contains(masked, LeftOut) {
			continue
		}
		from, ok := there[l.key]
		value, known := "", false
		if ok && (from.secret || from.file) {
			value, known = fill(masked, from)
		}
		if !known {
			missing = append(missing, l.key)
			continue
		}
		e, err := o.replaceRaw(l, value, from.file)
		if err != nil {
			return nil, nil, nil, err
		}
		edits, kept = append(edits, e), append(kept, l.key)
	}
	text = o.apply(edits)
	if _, err := Examine(text, ""); err != nil {
		return nil, nil, nil, errNotFound
	}
	return text, unique(kept), unique(missing), nil
}

// fill gives the secret of a present value for a masked one.
func fill(masked string, from leaf) (string, bool) {
	text, ok := scalarText(from.node)
	switch {
	case !ok || text == "" || strings.Contains(text, LeftOut):
		return "", false
	case masked == LeftOut:
		return text, true
	case from.file:
		return "", false
	case maskURL(text) == masked:
		return text, true
	}
	// Another address with the same user: the password is the camera's.
	scheme, rest, _ := strings.Cut(masked, "://")
	i, j := strings.LastIndexByte(rest, '@'), strings.LastIndexByte(text, '@')
	_, presentLogin, _ := strings.Cut(text[:max(j, 0)], "://")
	user, password, has := strings.Cut(presentLogin, ":")
	if i < 0 || !has || rest[:i] != user+":"+LeftOut || strings.Contains(rest[i:], LeftOut) {
		return "", false
	}
	return scheme + "://" + user + ":" + password + rest[i:], true
}

// replace puts a text in the place of a value, in its own style of quotes.
func (o *Outline) replace(l leaf, text string) (edit, error) { return o.replaceRaw(l, text, false) }

func (o *Outline) replaceRaw(l leaf, text string, asFile bool) (edit, error) {
	from, to, err := o.span(l)
	if err != nil {
		return edit{}, err
	}
	switch written := quoted(text, l.node.GetToken().Type); {
	case asFile:
		return edit{from, to, "{file: " + quoted(text, token.SingleQuoteType) + "}"}, nil
	default:
		return edit{from, to, written}, nil
	}
}

// quoted writes a single value in YAML.
func quoted(text string, style token.Type) string {
	line := !strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff
	})
	switch {
	case line && style != token.DoubleQuoteType && style != token.SingleQuoteType && safePlain.MatchString(text):
		return text
	case line && style != token.DoubleQuoteType:
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// line is the line on which a token begins, without its end, and where it begins.
func (o *Outline) line(t *token.Token) (text string, at int, ok bool) {
	if t == nil || t.Position == nil || t.Position.Line < 1 || t.Position.Line > len(o.lines) {
		return "", 0, false
	}
	at = o.lines[t.Position.Line-1]
	text, _, _ = strings.Cut(o.text[at:], "\n")
	return text, at, true
}

// offsets are the places where a token may begin: the parser counts most tabs as
// nothing, and some as a character.
func (o *Outline) offsets(t *token.Token) (found []int) {
	text, at, ok := o.line(t)
	if !ok {
		return nil
	}
	column, tabs := 1, 0
	for i, c := range text {
		if c == '\t' {
			tabs++
		} else if t.Position.Column == column-tabs || t.Position.Column == column {
			found = append(found, at+i)
		}
		column++
	}
	slices.Reverse(found) // tabs that count as nothing lead farther right
	return found
}

// span is where a value stands in the text.
func (o *Outline) span(l leaf) (from, to int, err error) {
	t := l.node.GetToken()
	if lit, ok := l.node.(*ast.LiteralNode); ok {
		t = lit.Start
	}
	for _, from := range o.offsets(t) {
		if from, to, ok := o.spanAt(l, t, from); ok {
			return from, to, nil
		}
	}
	return 0, 0, errNotFound
}

func (o *Outline) spanAt(l leaf, t *token.Token, from int) (start, end int, ok bool) {
	rest := o.text[from:]
	to := 0
	switch {
	case t.Type == token.DoubleQuoteType && rest[0] == '"':
		to, ok = endOfDouble(rest)
	case t.Type == token.SingleQuoteType && rest[0] == '\'':
		to, ok = endOfSingle(rest)
	case (t.Type == token.LiteralType || t.Type == token.FoldedType) && (rest[0] == '|' || rest[0] == '>'):
		to, ok = endOfBlock(rest, l.block), true
	case t.Type != token.DoubleQuoteType && t.Type != token.SingleQuoteType:
		return o.plainSpan(t, from)
	}
	return from, from + to, ok
}

func endOfDouble(s string) (int, bool) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1, true
		}
	}
	return 0, false
}

func endOfSingle(s string) (int, bool) {
	for i := 1; i < len(s); i++ {
		if s[i] != '\'' {
			continue
		}
		if !strings.HasPrefix(s[i:], "''") {
			return i + 1, true
		}
		i++
	}
	return 0, false
}

// endOfBlock is the end of the last line that is farther right than the key.
func endOfBlock(s string, column int) (end int) {
	at := 0
	for line := range strings.Lines(s) {
		text := strings.TrimRight(line, " \t\n")
		indent := len(text) - len(strings.TrimLeft(text, " "))
		if at > 0 && text != "" && indent < column {
			break
		}
		if at == 0 || text != "" {
			end = at + len(strings.TrimRight(line, "\n"))
		}
		at += len(line)
	}
	return end
}

// plainSpan finds the words of an unquoted value. The parser counts a value with
// blanks behind it as many places too far right.
func (o *Outline) plainSpan(t *token.Token, from int) (start, end int, ok bool) {
	blank := func(r rune) bool { return strings.ContainsRune(" \t\n", r) }
	words := strings.FieldsFunc(t.Value, blank)
	if len(words) == 0 {
		return 0, 0, false
	}
	line := strings.LastIndexByte(o.text[:from], '\n') + 1
	start = from
	for !strings.HasPrefix(o.text[start:], words[0]) {
		if start--; start < line {
			return 0, 0, false
		}
	}
	end = start
	for _, w := range words {
		end += len(o.text[end:]) - len(strings.TrimLeftFunc(o.text[end:], blank))
		if !strings.HasPrefix(o.text[end:], w) {
			return 0, 0, false
		}
		end += len(w)
	}
	return start, end, true
}

// apply makes the edits; of several at one place, as of a value with aliases,
// one is made.
func (o *Outline) apply(edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, e := range edits {
		if e.from < at {
			continue
		}
		b.WriteString(o.text[at:e.from])
		b.WriteString(e.text)
		at = e.to
	}
	b.WriteString(o.text[at:])
	text := b.String()
	if o.returns {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if o.mark {
		text = "\xef\xbb\xbf" + text
	}
	return []byte(text)
}

func unique(keys []string) []string {
	var out []string
	for _, k := range keys {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}
