import com.alibaba.nacos.core.code.ControllerMethodsCache;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.servlet.ServletComponentScan;
import org.springframework.context.ConfigurableApplicationContext;

/** Nacos without its console. */
@SpringBootApplication(scanBasePackages = "com.alibaba.nacos")
@ServletComponentScan("com.alibaba.nacos")
public class Server {
    public static void main(String[] arguments) {
        ConfigurableApplicationContext context = SpringApplication.run(Server.class, arguments);
        // Until this has been called every request is answered with 501.
        context.getBean(ControllerMethodsCache.class).initClassMethod("com.alibaba.nacos.naming.controllers");
    }
}
