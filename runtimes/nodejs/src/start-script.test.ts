import { describe, expect, test } from "vitest";
import { readStartScript } from "./start-script.ts";

const none = { variables: {}, preloads: [], args: [], left: [] };

describe("the script start runs", () => {
  test.each([
    ["node server.js", { file: "server.js" }],
    ["node srv", { file: "srv" }],
    ["node .", { file: undefined }],
    [
      "NODE_ENV=production MODE=x node -r ./pre.js srv.js --flag",
      {
        file: "srv.js",
        variables: { NODE_ENV: "production", MODE: "x" },
        preloads: [{ option: "--require", name: "./pre.js" }],
        args: ["--flag"],
      },
    ],
    ["cross-env A='b c' D=\"e f\" node a.js", { file: "a.js", variables: { A: "b c", D: "e f" } }],
    [
      "node --import ./pre.js --require=dotenv/config ./srv.js",
      {
        file: "./srv.js",
        preloads: [
          { option: "--import", name: "./pre.js" },
          { option: "--require", name: "dotenv/config" },
        ],
      },
    ],
    ["npx tsx src/index.ts", { file: "src/index.ts" }],
    [
      "node --env-file .env --inspect=0 a.js",
      { file: "a.js", left: ["--env-file .env", "--inspect=0"] },
    ],
    ["npm run build && node dist/main.js", { file: "dist/main.js", left: ["npm run build"] }],
    [
      "FUNC_LOG_LEVEL=info faas-js-runtime ./build/index.js",
      { file: "./build/index.js", variables: { FUNC_LOG_LEVEL: "info" } },
    ],
    [
      "functions-framework --target=hello --signature-type http --port=8081",
      { file: undefined, variables: { FUNCTION_TARGET: "hello", FUNCTION_SIGNATURE_TYPE: "http" } },
    ],
  ])("%s", (script, expected) => {
    expect(readStartScript(script)).toEqual({ ...none, ...expected });
  });

  test.each(["nest start", "next start", "node", "", "react-scripts start", 7, undefined])(
    "nothing that is known: %s",
    (script) => expect(readStartScript(script)).toBeUndefined(),
  );
});
