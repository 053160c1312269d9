/** What is wrong in a `.env` file: Node.js passes over such lines without a word. */

export interface DotEnvProblem {
  /** From 1. */
  line: number;
  message: string;
}

/** A value in quotes may have several lines. */
const variable = /^\s*(?:export\s+)?[\w.-]+\s*=\s*(.?)/;

export function dotEnvProblems(text: string): DotEnvProblem[] {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const problems: DotEnvProblem[] = [];
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? "";
    if (/^\s*(?:#|$)/.test(line)) continue;
    const found = variable.exec(line);
    // The content may be a secret.
    if (!found) problems.push({ line: at + 1, message: "this line is not NAME=VALUE" });
    const [all = "", quote = ""] = found ?? [];
    if (!/^["'`]$/.test(quote) || line.includes(quote, all.length)) continue;
    const end = lines.findIndex((each, index) => index > at && each.includes(quote));
    if (end < 0)
      problems.push({ line: at + 1, message: `the value's closing ${quote} is missing` });
    else at = end;
  }
  return problems;
}
