import { administrationApi, documentOf } from "./aggregated.ts";

const { group } = administrationApi;

/**
 * The administration's API while no Pod of its program runs, served by another program: discovery as always, so that
 * the deletion of namespaces continues, and 503 for everything else.
 */
export const administrationStandIn = {
  /** Undefined for any other request. */
  answers(request: Request): Promise<Response> | undefined {
    const { pathname } = new URL(request.url);
    if (pathname !== "/apis" && !`${pathname}/`.startsWith(`/apis/${group}/`)) return undefined;
    const document = request.method === "GET" ? documentOf(pathname) : undefined;
    return Promise.resolve(
      Response.json(document ?? unavailable, { status: document ? 200 : 503 }),
    );
  },
};

const unavailable = {
  kind: "Status",
  apiVersion: "v1",
  status: "Failure",
  reason: "ServiceUnavailable",
  code: 503,
  message:
    "the program that delivers events does not run: look at the Pods of the Deployment serverless-eventing",
};
