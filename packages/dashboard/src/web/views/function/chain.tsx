import { type Function } from "@spry/function/browser";
import { type Pod } from "@spry/kube/browser";
import { paths } from "../../router.ts";
import { chainOf } from "../../state/chain.ts";
import { type Tone } from "../../state/function-state.ts";

const toneWords: Record<Tone, string> = {
  good: "done",
  busy: "in progress",
  warn: "needs attention",
  bad: "failed",
  idle: "not begun",
};

/** From source to Pods. The link that blocks the Function is red, and leads to the reason. */
export function Chain({
  fn,
  pods,
  podsProblem = "",
}: {
  fn: Function;
  pods: readonly Pod[];
  /** Why they are not known. */
  podsProblem?: string;
}) {
  const { namespace = "", name = "" } = fn.metadata;
  return (
    <ol class="chain" aria-label="From source to Pods">
      {chainOf(fn, podsProblem ? undefined : pods).map((link) => (
        <li key={link.name} class={`tone-${link.tone}`}>
          <a href={paths.fn(namespace, name, link.tab)}>
            <span class="link-name">
              <span class="dot" />
              {link.name}
              <span class="sr">: {toneWords[link.tone]},</span>
            </span>
            <span class="link-text clip" title={link.text}>
              {link.text}
            </span>
          </a>
        </li>
      ))}
    </ol>
  );
}
