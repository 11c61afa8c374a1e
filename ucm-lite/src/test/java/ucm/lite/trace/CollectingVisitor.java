package ucm.lite.trace;

import java.util.ArrayList;
import java.util.List;

/** Keeps all it is told. */
final class CollectingVisitor implements TraceVisitor {
  final List<TraceRequest> requests = new ArrayList<>();
  final List<String> progress = new ArrayList<>();

  @Override
  public void request(TraceRequest request) {
    requests.add(request);
  }

  @Override
  public void progress(long bytesRead, long bytesTotal) {
    progress.add(bytesRead + "/" + bytesTotal);
  }
}
