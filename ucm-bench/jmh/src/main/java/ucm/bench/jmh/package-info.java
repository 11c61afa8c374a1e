/**
 * JMH benchmarks of hit curves. Run by hand: {@code mvn -q -pl ucm-bench/jmh -am package
 * -DskipTests -Dbench=Curve -Dbench.skip=false}.
 */
package ucm.bench.jmh;
