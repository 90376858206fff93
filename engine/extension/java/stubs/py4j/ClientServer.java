package py4j;

public class ClientServer {
  public Py4JJavaServer getJavaServer() {
    throw new Error();
  }

  public void shutdown() {}

  public static class ClientServerBuilder {
    public ClientServerBuilder entryPoint(Object object) {
      throw new Error();
    }

    public ClientServerBuilder javaAddress(java.net.InetAddress address) {
      throw new Error();
    }

    public ClientServerBuilder javaPort(int port) {
      throw new Error();
    }

    public ClientServerBuilder authToken(String token) {
      throw new Error();
    }

    public ClientServer build() {
      throw new Error();
    }
  }
}
