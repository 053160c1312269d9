import { Component, type ComponentChildren } from "preact";
import { messageOf } from "@spry/kube/browser";
import { forgetStored } from "../state/tab-storage.ts";
import { reportProblem } from "../api/report.ts";
import { Problem } from "./basics.tsx";

interface Props {
  /** What is inside, for the message: `The tab Logs`. */
  name: string;
  /** Around the message, where the view has the page's frame inside. */
  around?: (message: ComponentChildren) => ComponentChildren;
  children: ComponentChildren;
}

/** A part of the page whose failure leaves the rest as it is, says what has failed, and leads on. Give it a key of what it shows. */
export class Boundary extends Component<Props, { failure?: unknown }> {
  override state: { failure?: unknown } = {};

  static override getDerivedStateFromError(failure: unknown): { failure: unknown } {
    return { failure: failure ?? "unknown" };
  }

  override componentDidCatch(failure: unknown): void {
    reportProblem(this.props.name, failure);
  }

  override render({ name, around = (message) => message, children }: Props): ComponentChildren {
    const { failure } = this.state;
    if (failure === undefined) return children;
    return around(
      <Problem title={`${name} has failed`} text={messageOf(failure)}>
        <p>
          The rest of the page works. If a reload does not help, what this tab has stored may be the
          cause.
        </p>
        <p class="row wrap">
          <button type="button" onClick={() => location.reload()}>
            Reload
          </button>
          <button
            type="button"
            class="danger"
            onClick={() => {
              forgetStored();
              location.reload();
            }}
          >
            Forget what was stored, and reload
          </button>
          <a href="/functions">All Functions</a>
        </p>
      </Problem>,
    );
  }
}
