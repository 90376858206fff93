package py4j;

public interface Py4JJavaServer {
  int getListeningPort();
}
