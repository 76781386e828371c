package store

// Request ids may carry the time at which they were made, in one of two forms:
//
//	UUIDv7  36 characters, 8-4-4-4-12 hexadecimal digits: 48 bits of Unix milliseconds, then the
//	        version, 7, then the variant, 8 to b, and random bits (RFC 9562)
//	ULID    26 characters of Crockford's base 32: 48 bits of Unix milliseconds, then 80 random ones
//
// Letters may be of either case. Even so, ids are compared byte by byte.

// MaxIDAhead is how far, in milliseconds, the time that an id carries may be ahead of the time
// stamp it is answered at and still count: see [State.IDFloor].
const MaxIDAhead = 3_600_000

// IDTime returns the time that a request id carries, in Unix milliseconds. ok is false if it
// carries none.
func IDTime[T string | []byte](id T) (ms int64, ok bool) {
	switch len(id) {
	case 26:
		return ulidTime(id)
	case 36:
		return uuidTime(id)
	}
	return 0, false
}

func uuidTime[T string | []byte](id T) (ms int64, ok bool) {
	if id[14] != '7' || digit(id[19])&^3 != 8 {
		return 0, false
	}
	for i := range 36 {
		d := digit(id[i])
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if id[i] != '-' {
				return 0, false
			}
		case d < 0 || d > 15:
			return 0, false
		case i < 13:
			ms = ms<<4 | int64(d)
		}
	}
	return ms, true
}

func ulidTime[T string | []byte](id T) (ms int64, ok bool) {
	if id[0] > '7' { // 130 bits, of which an id has 128
		return 0, false
	}
	for i := range 26 {
		d := digit(id[i])
		if d < 0 {
			return 0, false
		}
		if i < 10 {
			ms = ms<<5 | int64(d)
		}
	}
	return ms, true
}

// crockford are the values of Crockford's digits of base 32, plus one, from 'a' on: without i, l, o
// and u.
const crockford = "\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x00\x13\x14\x00\x15\x16\x00\x17\x18\x19\x1a\x1b\x00\x1c\x1d\x1e\x1f\x20"

// digit returns the value of one of Crockford's digits, -1 if c is none. The first 16 are the
// hexadecimal ones.
func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'z':
		return int(crockford[c|0x20-'a']) - 1
	}
	return -1
}
