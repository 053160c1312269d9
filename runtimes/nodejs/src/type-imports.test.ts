import { describe, expect, test } from "vitest";
import { withoutTypeImports } from "./type-imports.ts";

/** Of sources whose types have been removed. */
const kept = [
  `import { a } from "x";\nf(a);`,
  `import a from "x"; f(a);`,
  `import a, { b } from "x";\nf(b);`,
  `import { a as b } from "x"; f(b);`,
  `import "x";`,
  `import {} from "x";`,
  `import * as a from "x";`,
  `import { $a } from "x"; f($a);`,
  `const text = "import { a } from 'x'";`,
];
const removed = [
  `import { a } from "x";\nf();`,
  `import { a, b as c } from 'x'\nf(b);`,
  `import a from "x"; f(ab, a$);`,
  `import a, {\n  b,\n} from "x";\nf();`,
  `  import { a } from "x";`,
];

describe("imports", () => {
  test.each(kept)("are kept where code uses them: %j", (source) => {
    expect(withoutTypeImports(source)).toBe(source);
  });

  test.each(removed)("become blanks where only types did: %j", (source) => {
    const result = withoutTypeImports(source);
    expect(result).not.toContain("import");
    expect(result.length).toBe(source.length);
    expect(result.split("\n").length).toBe(source.split("\n").length);
  });
});
