// Search in pages opened as files: browsers refuse workers there, so a hidden frame does the work of one.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(address) {
      const { port1, port2 } = new MessageChannel();
      this.port = port1;
      this.port.onmessage = (event) => this.onmessage?.(event);
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => port2.postMessage(data);
      const script = inside.document.createElement("script");
      script.src = address;
      // What is sent before the script is there waits at the port.
      script.onload = () => (port2.onmessage = (event) => inside.onmessage(event));
      script.onerror = () => this.onerror?.(new ErrorEvent("error"));
      inside.document.head.append(script);
    }

    postMessage(data) {
      this.port.postMessage(data);
    }

    terminate() {
      this.port.close();
      this.frame.remove();
    }
  };
}
