import { maxPageBytes } from "@spry/queue";
import { type Call, callBucket } from "../calls/call.ts";
import { withWait } from "../calls/waits.ts";
import { type AdminRequest, type AdminRoute } from "./admin-handler.ts";
import { Problem } from "./problem.ts";
import { inNamespace, label, limitOf } from "./requests.ts";

const call = `${inNamespace}/calls/(?<id>[0-9a-z]{9,12}-[0-9a-f]{32})`;

export const callRoutes: readonly AdminRoute[] = [
  {
    method: "GET",
    path: new RegExp(`${inNamespace}/calls$`),
    verb: "list",
    resource: "calls",
    async handle(request) {
      const limit = limitOf(request);
      const after = request.query.get("after") ?? "";
      const kept = await request.queue.list(callBucket(request.namespace), { after, limit });
      // Without results, which may be large.
      const items = await Promise.all(
        kept.map(async ({ value }) => {
          const call = JSON.parse(value) as Call;
          const { response, ...shown } = await withWait(
            request.queue,
            request.namespace,
            call,
            owner(),
          );
          return response === undefined
            ? shown
            : { ...shown, response: { status: response.status } };
        }),
      );
      const bytes = kept.reduce((sum, { value }) => sum + value.length, 0);
      const isFull = kept.length === limit || bytes >= maxPageBytes;
      return { items, ...(isFull ? { next: kept.at(-1)?.key } : {}) };
    },
  },
  {
    method: "GET",
    path: new RegExp(`${call}$`),
    verb: "get",
    resource: "calls",
    async handle({ queue, namespace, id }) {
      const kept = await queue.get(callBucket(namespace), id);
      if (kept === undefined) throw missing(id);
      return withWait(queue, namespace, JSON.parse(kept) as Call, owner());
    },
  },
  {
    method: "POST",
    path: new RegExp(`${call}/cancel$`),
    verb: "delete",
    resource: "calls",
    async handle({ queue, calls, namespace, id }: AdminRequest) {
      if (!(await calls.cancel(queue, namespace, id)))
        throw new Problem(409, `call ${id} does not exist, or has ended`);
    },
  },
  {
    method: "POST",
    path: new RegExp(`${inNamespace}/functions/(?<name>${label})/schedules/(?<id>${label})/run$`),
    verb: "create",
    resource: "calls",
    async handle({ queue, calls, namespace, name, id }) {
      const call = await calls.run(queue, `${namespace}/${name}`, id);
      if (call !== undefined) return { call };
      throw new Problem(404, `Function ${name} of namespace ${namespace} has no schedule ${id}`);
    },
  },
];

const owner = () => ({ isPublic: false, now: Date.now() });
const missing = (id: string) =>
  new Problem(404, `call ${id} does not exist, or its result is no longer kept`);
