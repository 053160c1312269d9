const label1035 = /^[a-z](?:[-a-z0-9]*[a-z0-9])?$/;
const label1123 = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const subdomain = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const qualified = /^(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;

/** Kubernetes' own words (`k8s.io/apimachinery/pkg/util/validation`), as Go prints a list of them. */
export function label1035Problems(name: string): string | undefined {
  const problems: string[] = [];
  if (name.length > 63) problems.push("must be no more than 63 characters");
  if (!label1035.test(name)) {
    problems.push(
      "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, " +
        "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
    );
  }
  return problems.length > 0 ? `[${problems.join(" ")}]` : undefined;
}

/** A prefix may end in a dash. */
export function label1035PrefixProblems(prefix: string): string | undefined {
  return label1035Problems(prefix.endsWith("-") ? `${prefix.slice(0, -1)}a` : prefix);
}

export function isLabel1123(name: string): boolean {
  return name.length <= 63 && label1123.test(name);
}

/** The problem, or undefined. */
export function subdomainProblem(name: string): string | undefined {
  if (name.length > 253) return "must be no more than 253 characters";
  if (subdomain.test(name)) return undefined;
  return (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with " +
    "an alphanumeric character (e.g. 'example.com', regex used for validation is " +
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
  );
}

export function qualifiedNameProblem(name: string): string | undefined {
  if (name.length <= 63 && qualified.test(name)) return undefined;
  return (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
  );
}
