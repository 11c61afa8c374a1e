package ucm.example.hello;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import ucm.api.Store;
import ucm.testkit.KillContract;

final class HelloKillTest extends KillContract {

  @Override
  protected Store newStore() {
    return new HelloStore();
  }

  @Override
  protected Map<String, Object> settings(Path directory) {
    return Map.of("hello_directory", directory.toString());
  }

  @Override
  protected List<Map<String, Object>> variants() {
    return List.of(Map.of(), Map.of("hello_sync", true));
  }

  @Override
  protected int writers() {
    return 2;
  }
}
