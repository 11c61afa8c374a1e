package acme.app;

import java.nio.file.Path;
import ucm.pipeline.catalog.StoreCatalog;

/** A program that embeds UCM: prints what it finds, one line each. */
public final class ListStores {

  private ListStores() {}

  /** Takes the plugins folder. */
  public static void main(String[] arguments) {
    StoreCatalog catalog = StoreCatalog.find(Path.of(arguments[0]));
    System.out.println(catalog.searched().getFirst());
    catalog.entries().forEach(System.out::println);
    catalog.problems().forEach(System.out::println);
    catalog.names().forEach(name -> System.out.println(catalog.create(name).name()));
  }
}
