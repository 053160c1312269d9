/** The administration as an API of the cluster's API server, which has authenticated the user and passes the request on. */
import { type RequestListener } from "node:http";

export const administrationApi = { group: "eventing.spry.io", version: "v1" } as const;

const { group, version } = administrationApi;
const root = `/apis/${group}`;
const groupVersion = { groupVersion: `${group}/${version}`, version };
const apiGroup = {
  kind: "APIGroup",
  apiVersion: "v1",
  name: group,
  versions: [groupVersion],
  preferredVersion: groupVersion,
};
/** What the API server asks to find out whether this is available. Nothing here is an object that is kept, so that nothing is listed. */
const documents: Readonly<Record<string, object>> = {
  "/apis": { kind: "APIGroupList", apiVersion: "v1", groups: [apiGroup] },
  [root]: apiGroup,
  [`${root}/${version}`]: {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: `${group}/${version}`,
    resources: [],
  },
};

/** What discovery gets at this path. */
export const documentOf = (pathname: string): object | undefined =>
  documents[pathname.replace(/\/$/, "")];

/** Answers discovery, and everything else below the group's path as `handler` does without it: `/apis/eventing.spry.io/v1/…` is `/v1/…`. */
export function aggregated(handler: RequestListener): RequestListener {
  return (request, response) => {
    const { url = "/" } = request;
    const [pathname = "/"] = url.split("?", 1);
    const document = documentOf(pathname);
    if (document && request.method === "GET") {
      response.writeHead(200, { "content-type": "application/json" });
      return void response.end(JSON.stringify(document));
    }
    if (pathname.startsWith(`${root}/`)) request.url = url.slice(root.length);
    return handler(request, response);
  };
}
