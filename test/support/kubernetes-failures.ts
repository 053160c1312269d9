/** What kube-apiserver, too, answers with 500, in these words. */
export const failsInKubernetes =
  /failed to create typed patch object|unknown patch type|does not contain declared merge key|strconv.ParseUint|resourceVersion: Invalid value/;
