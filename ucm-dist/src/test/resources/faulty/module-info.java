/** A stage that fails on demand, for tests of engines in other processes. */
module test.faulty {
  requires ucm.api;

  provides ucm.api.Store with
      test.faulty.FaultyStage;
}
