import { expect, test } from "vitest";
import { parseRule } from "../cel-environment.ts";

test.each([
  "isIP('1.2.3.4') && isIP('::1') && !isIP('1.2.3') && !isIP('fe80::1%eth0') && !isIP('::ffff:1.2.3.4')",
  "ip('::1').isLoopback() && ip('127.1.2.3').isLoopback() && !ip('10.0.0.1').isLoopback()",
  "ip('10.0.0.1').family() == 4 && ip('fe80::1').isLinkLocalUnicast()",
  "ip('8.8.8.8').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()",
  "ip.isCanonical('2001:db8::1') && !ip.isCanonical('2001:DB8::1')",
  "string(ip('2001:0db8:0:0::1')) == '2001:db8::1'",
  "cidr('10.0.0.0/8').containsIP('10.1.1.1') && !cidr('10.0.0.0/8').containsIP(ip('11.1.1.1'))",
  "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
  "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').prefixLength() == 8",
  "!isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0')",
  "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0-alpha').isLessThan(semver('1.0.0'))",
  "semver('1.0.0-alpha.2').compareTo(semver('1.0.0-alpha.10')) == -1",
  "isSemver('v1.2', true) && !isSemver('v1.2') && semver('v01.2', true).minor() == 2",
  "sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], ['a'])",
  "format.dns1123Label().validate('A').hasValue() && !format.dns1123Label().validate('a').hasValue()",
  "format.named('uuid').value().validate('x').orValue([]).size() == 1",
  "!format.named('unknown').hasValue()",
  "'%s has %d, %.2f, %x'.format(['a', 1, 1.5, 255]) == 'a has 1, 1.50, ff'",
  "'aaa'.replace('a', 'b', 2) == 'bba'",
  "strings.quote('a\"b') == '\"a\\\\\"b\"'",
  "[3, 1, 2].sort() == [1, 2, 3] && [1, [2]].flatten() == [1, 2] && [1, 1].distinct() == [1]",
  "lists.range(3) == [0, 1, 2] && [1, 2, 3].slice(1, 3) == [2, 3] && [1, 2].last().value() == 2",
  "matches('Ab', '^(?i)aB$') && !matches('Ab', '^aB$') && 'x1Y'.find('(?i)[[:digit:]]y') == '1Y'",
  "'Ab'.matches('^(?i)aB$') && ['Ab'].all(t, t.matches('^[[:alpha:]]+$'))",
  "quantity('1Gi').add(1).compareTo(quantity('1073741825')) == 0",
  "url('https://a.b/c?d=e').getQuery()['d'] == ['e']",
])("%s", (expression) => {
  expect(parseRule(expression)({})).toBe(true);
});

test.each(["ip('x')", "cidr('1.2.3.4')", "semver('1')", "'%d'.format(['a'])", "[1].slice(0, 2)"])(
  "%s fails",
  (expression) => {
    expect(() => {
      parseRule(expression)({});
    }).toThrow();
  },
);
