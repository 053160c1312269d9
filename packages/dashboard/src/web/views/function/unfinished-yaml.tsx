import { type Function } from "@spry/function/browser";
import { paths } from "../../router.ts";

/** While the text of the YAML tab cannot be read, the other tabs only show: an edit there would replace the text. */
export function UnfinishedYaml({ fn: { metadata } }: { fn: Function }) {
  const { namespace = "", name = "" } = metadata;
  return (
    <p class="hint" role="status">
      The <a href={paths.fn(namespace, name, "yaml")}>YAML</a> that you have typed cannot be read
      yet: finish it, or discard it, to change something here.
    </p>
  );
}
