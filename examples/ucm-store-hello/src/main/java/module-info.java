/** The store {@code Hello}. */
module ucm.example.hello {
  requires ucm.api;

  provides ucm.api.Store with
      ucm.example.hello.HelloStore;
}
