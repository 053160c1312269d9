import { useMemo } from "preact/hooks";
import { type Function } from "@spry/function/browser";
import { type LogLine } from "../../state/log-lines.ts";
import { paths } from "../../router.ts";
import { errorsIn, grouped } from "../../state/last-errors.ts";
import { readable } from "../../state/place-in-code.ts";
import { Age } from "../../ui/basics.tsx";

const maxShown = 5;

/** The last errors in the output, each with its stack and the line of the source that it comes from. */
export function LastErrors({ fn, lines }: { fn: Function; lines: readonly LogLine[] }) {
  const errors = useMemo(() => grouped(errorsIn(lines)), [lines]);
  if (errors.length === 0) return null;
  const { namespace = "", name = "" } = fn.metadata;
  const source = fn.spec.source.inline?.source.split("\n");
  return (
    <section class="panel" aria-label="Last errors">
      <div class="head">
        <h2>Last errors</h2>
        <span class="muted">
          {errors.reduce((sum, { count }) => sum + count, 0)} in the output below
          {errors.length > maxShown ? `, ${maxShown} kinds shown` : ""}
        </span>
      </div>
      <div class="body stack">
        {errors.slice(0, maxShown).map((error) => {
          const code = error.place && source?.[error.place.line - 1];
          return (
            <details key={error.id} class="found-error">
              <summary>
                <span class="error-text">{readable(error.title)}</span>{" "}
                <span class="muted nowrap">
                  {error.count > 1 && `${error.count} times, last `}
                  <Age time={error.time} /> ago
                </span>
              </summary>
              {error.place && (
                <p class="row wrap">
                  {source ? (
                    <a href={`${paths.fn(namespace, name, "code")}?line=${error.place.line}`}>
                      {error.place.file}, line {error.place.line}
                    </a>
                  ) : (
                    <span>
                      {error.place.file}, line {error.place.line}
                    </span>
                  )}
                  {code !== undefined && <code class="clip">{code.trim()}</code>}
                </p>
              )}
              {error.request !== undefined && (
                <p class="muted">
                  Request <span class="mono">{error.request}</span>
                </p>
              )}
              {error.stack !== "" && <pre tabIndex={0}>{readable(error.stack)}</pre>}
              <p class="muted">{error.pod}</p>
            </details>
          );
        })}
      </div>
    </section>
  );
}
