package intrinsic

import (
	"fmt"
	"math/big"
	"net/netip"
)

// cidr evaluates Fn::Cidr [ipBlock, count, cidrBits]: count networks with cidrBits host bits, from the start of
// the block (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-cidr.html).
func (e *evaluation) cidr(arg any, path string) any {
	list, ok := e.arguments(arg, path, 3, 3, "an IP block, a count and the number of host bits")
	if !ok {
		return failed{}
	}
	block, count, bits := e.value(list[0], item(path, 0)), e.value(list[1], item(path, 1)), e.value(list[2], item(path, 2))
	if b, stop := blocked(block, count, bits); stop {
		return b
	}
	s, isText := text(block)
	prefix, err := netip.ParsePrefix(s)
	if !isText || err != nil {
		return e.fail(item(path, 0), "the IP block is not in CIDR notation", "found "+kindOf(block))
	}
	n, ok := whole(count)
	if !ok || n < 1 || n > 256 {
		return e.fail(item(path, 1), "the count is not a whole number from 1 to 256", "")
	}
	size := prefix.Addr().BitLen()
	hostBits, ok := whole(bits)
	if !ok || hostBits < 1 || hostBits > int64(size) {
		return e.failf(item(path, 2), "the number of host bits is out of range", "it is a whole number from 1 to %d", size)
	}
	newBits := size - int(hostBits)
	if newBits < prefix.Bits() {
		return e.failf(path, "the networks would be larger than the block", "the block has %d host bits, the networks %d", size-prefix.Bits(), hostBits)
	}
	if room := newBits - prefix.Bits(); room < 63 && n > int64(1)<<room {
		return e.failf(path, "the block has no room for so many networks", "%d fit, %d are asked for", int64(1)<<room, n)
	}
	return networks(prefix.Masked().Addr(), int(n), newBits)
}

func networks(start netip.Addr, n, bits int) []any {
	size := start.BitLen()
	step := new(big.Int).Lsh(big.NewInt(1), uint(size-bits))
	at := new(big.Int).SetBytes(start.AsSlice())
	out := make([]any, n)
	for i := range out {
		raw := at.FillBytes(make([]byte, size/8))
		addr, _ := netip.AddrFromSlice(raw)
		out[i] = fmt.Sprintf("%s/%d", notation(addr), bits)
		at.Add(at, step)
	}
	return out
}

// notation writes an IPv6 address without "::", eight groups without leading zeros, as CloudFormation does and
// cdkd records it.
func notation(a netip.Addr) string {
	if a.Is4() {
		return a.String()
	}
	b := a.As16()
	s := ""
	for i := 0; i < 16; i += 2 {
		if i > 0 {
			s += ":"
		}
		s += fmt.Sprintf("%x", uint16(b[i])<<8|uint16(b[i+1]))
	}
	return s
}
