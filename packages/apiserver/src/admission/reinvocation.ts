import { deepEqual, type UnknownObject } from "@spry/kube";

/**
 * Who may be called again after others have changed the object
 * (`k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/reinvocationcontext.go`): of those with
 * `reinvocationPolicy: IfNeeded`, the ones that were called before the change; once.
 */
export class Reinvocation {
  /** Whether this is the second round. */
  isSecond = false;
  #isNeeded = false;
  #called = new Set<string>();
  #again = new Set<string>();
  #output: UnknownObject | undefined;

  get isNeeded(): boolean {
    return this.#isNeeded;
  }

  mayCall(key: string): boolean {
    return !this.isSecond || this.#again.has(key);
  }

  noteCall(key: string, mayBeCalledAgain: boolean): void {
    if (mayBeCalledAgain) this.#called.add(key);
  }

  /** What one of them made of the object. */
  noteOutput(before: UnknownObject | undefined, after: UnknownObject | undefined): void {
    if (deepEqual(before, after)) return;
    this.#isNeeded = true;
    this.#callAgain();
  }

  /** Between the rounds: the object as the first one left it. */
  beginSecond(output: UnknownObject | undefined): void {
    this.isSecond = true;
    this.#output = output;
  }

  /** What the server's own mutations made of it in the second round. */
  noteInput(object: UnknownObject | undefined): void {
    if (this.isSecond && !deepEqual(this.#output, object)) this.#callAgain();
  }

  #callAgain(): void {
    for (const key of this.#called) this.#again.add(key);
    this.#called.clear();
  }
}
