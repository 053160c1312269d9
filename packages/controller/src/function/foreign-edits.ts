import { annotations } from "@spry/function";
import { type KubeObject, type ObjectKey } from "@spry/kube";

/**
 * Notices when the controller had to restore a child that another client had changed: it wrote the same desired object again, and
 * that changed something. Only in memory: after a restart, the first restoration is not noticed.
 */
export class ForeignEdits {
  readonly #last = new Map<ObjectKey, { desired: string | undefined; generation: number }>();

  /** To be called with the child after each comparison; true when a write has just undone a change of another client. */
  undone(key: ObjectKey, child: KubeObject, isWritten: boolean): boolean {
    const { annotations: all, generation = 0 } = child.metadata;
    const desired = all?.[annotations.desired];
    const before = this.#last.get(key);
    this.#last.set(key, { desired, generation });
    // A write that a stale cache has caused changes nothing: the generation is as before.
    return isWritten && before?.desired === desired && generation > (before?.generation ?? 0);
  }

  forget(key: ObjectKey): void {
    this.#last.delete(key);
  }
}
