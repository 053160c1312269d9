/** Program for `bench/gateway.ts`: the least that can stand behind a proxy, so that the proxy is what is measured. */
import { type AddressInfo, createServer } from "node:net";

const body = "Hello World!";
const response = `HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
const server = createServer({ noDelay: true }, (socket) => {
  // Requests without a body, each in one packet.
  socket.on("data", () => socket.write(response)).on("error", () => socket.destroy());
});
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.on("disconnect", () => process.exit());
