/** Program: `npm run foreign-tools`. Builds the tools that test/conformance/tools runs, where they are not cached yet. */
import { buildMissing } from "../real-apiserver/binaries.ts";
import { buildOperatorTests } from "./operator.ts";

await buildMissing(new AbortController().signal, ["kubectl"]);
buildOperatorTests();
