//! nodetool over the network: the port, logins, TLS, and where the node does not start.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::client::Client;
use crate::node::{Node, Place};

/// Runs nodetool: exit code, standard output, standard error.
fn nodetool(args: &[&str]) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let line = std::iter::once("nodetool").chain(args.iter().copied()).map(OsString::from);
    let code = nodetool::main_with(line, &mut out, &mut err).unwrap();
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

/// What nodetool says where it does not get in.
fn kept_out(host: &str, why: &str) -> (u8, String, String) {
    let text = format!("nodetool: Failed to connect to '{host}:7199' - {why}.\n");
    (1, String::new(), text)
}

fn version() -> (u8, String, String) {
    (0, "ReleaseVersion: 5.0.9\n".to_owned(), String::new())
}

/// Settings as arguments.
fn set(settings: &[String]) -> Vec<&str> {
    settings.iter().flat_map(|setting| ["--set", setting.as_str()]).collect()
}

fn port(place: &Place) -> Vec<String> {
    vec!["admin_enabled=true".to_owned(), format!("admin_address={}", place.ip())]
}

/// Settings of a node with the superuser `admin` and the password `secret`.
fn roles(place: &Place) -> Vec<String> {
    let file = place.dir.join("password");
    std::fs::write(&file, "secret\n").unwrap();
    vec![
        "authenticator=PasswordAuthenticator".to_owned(),
        "authorizer=CassandraAuthorizer".to_owned(),
        "auth_bcrypt_gensalt_log2_rounds=4".to_owned(),
        "first_superuser=admin".to_owned(),
        format!("first_superuser_password_file={}", file.display()),
    ]
}

/// Makes keys, of which the node's is of its address; settings of TLS.
fn tls(place: &Place) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/admin/tests");
    let script = script.join("certificates.sh");
    let made = Command::new("sh").arg(script).arg(&place.dir).arg(place.ip()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let path = |name: &str| place.dir.join(name).display().to_string();
    vec![
        "admin_encryption_options.enabled=true".to_owned(),
        format!("admin_encryption_options.keystore={}", path("node.pem")),
        format!("admin_encryption_options.truststore={}", path("ca.pem")),
    ]
}

#[test]
fn without_roles_nobody_logs_in_over_loopback() {
    let place = Place::new(32);
    let ip = place.ip();
    let refused = kept_out(&ip, "ConnectException: 'Connection refused'");
    let data = place.data().display().to_string();
    // no port is opened unless it is asked for
    let node = place.serve(&[]);
    assert_eq!(nodetool(&["-h", &ip, "version"]), refused);
    // the socket answers in the port's place where both are named
    assert_eq!(nodetool(&["--data-dir", &data, "-h", &ip, "version"]), version());
    node.stop();

    let node = place.serve(&set(&port(&place)));
    assert_eq!(nodetool(&["-h", &ip, "version"]), version());
    assert_eq!(nodetool(&["--host", &ip, "--port", "7199", "version"]), version());
    assert_eq!(nodetool(&["-h", &ip, "-u", "any", "-pw", "x", "version"]), version());
    let (code, status, _) = nodetool(&["-h", &ip, "-p", "7199", "-pp", "status"]);
    assert!(code == 0 && status.contains(&format!("UN  {ip}:7000")), "{status}");
    // who names neither host nor port uses the socket, as ever
    assert_eq!(nodetool(&["--data-dir", &data, "version"]), version());
    let (code, out, _) = nodetool(&["-h", &ip, "-p", "x", "version"]);
    assert!(code == 1 && out.starts_with("nodetool: For input string: \"x\"\n"), "{out}");
    node.stop();
}

#[test]
fn with_roles_a_superuser_logs_in() {
    let place = Place::new(33);
    let ip = place.ip();
    let settings = [port(&place), roles(&place)].concat();
    let node = place.serve(&set(&settings));
    let file = place.dir.join("jmxremote.password");
    std::fs::write(&file, "reader no\nadmin secret\n").unwrap();
    let file = file.display().to_string();

    let required = "SecurityException: 'Authentication failed! Credentials required'";
    assert_eq!(nodetool(&["-h", &ip, "version"]), kept_out(&ip, required));
    assert_eq!(nodetool(&["-h", &ip, "-u", "admin", "-pw", "secret", "version"]), version());
    let long = ["--host", &ip, "--username", "admin", "--password", "secret", "version"];
    assert_eq!(nodetool(&long), version());
    assert_eq!(nodetool(&["-h", &ip, "-u", "admin", "-pwf", &file, "version"]), version());
    let absent = nodetool(&["-h", &ip, "-u", "admin", "-pwf", "/nosuch", "version"]);
    let said = "error: /nosuch (No such file or directory)\n".to_owned();
    assert_eq!(absent, (2, String::new(), said));

    let wrong = |user: &str| {
        let what = format!("Provided username {user} and/or password are incorrect");
        kept_out(&ip, &format!("FailedLoginException: '{what}'"))
    };
    assert_eq!(nodetool(&["-h", &ip, "-u", "admin", "-pw", "guess", "version"]), wrong("admin"));
    assert_eq!(nodetool(&["-h", &ip, "-u", "nosuch", "-pw", "x", "version"]), wrong("nosuch"));

    let mut client = Client::connect_as(&ip, "admin", "secret");
    client.query("CREATE ROLE plain WITH PASSWORD = 'p' AND LOGIN = true");
    let denied = kept_out(&ip, "SecurityException: 'Access Denied'");
    assert_eq!(nodetool(&["-h", &ip, "-u", "plain", "-pw", "p", "version"]), denied);
    let lines = client.query("SELECT message FROM system_views.system_logs");
    let lines: Vec<_> = lines.into_iter().flatten().flatten().collect();
    let lines: Vec<_> = lines.into_iter().map(|line| String::from_utf8(line).unwrap()).collect();
    let failed = "refused a login of nodetool from 127.0.0.1 as 'admin'";
    assert!(lines.iter().any(|line| line.starts_with(failed)), "{lines:?}");
    assert!(lines.iter().all(|line| !line.contains("guess")), "{lines:?}");
    let stats = node.verb(&["clientstats", "--all"]);
    assert!(stats.contains("Total connected clients: 1\n") && stats.contains(" admin "), "{stats}");
    let recent = node.verb(&["clientstats", "--by-protocol"]);
    assert!(recent.contains("4/v4             /127.0.0.1 "), "{recent}");
    assert_eq!(node.verb(&["clientstats", "--clear-history"]), "Clearing connection history\n");
    let recent = node.verb(&["clientstats", "--by-protocol"]);
    assert_eq!(recent, "Clients by protocol version\n\n");
    assert_eq!(node.verb(&["invalidaterolescache"]), "");
    // without the port, who may open the socket needs no login
    assert_eq!(node.verb(&["version"]), "ReleaseVersion: 5.0.9\n");
    node.stop();
}

#[test]
fn nodetool_speaks_tls() {
    let place = Place::new(34);
    let ip = place.ip();
    let node = place.serve(&set(&[port(&place), tls(&place)].concat()));
    let path = |name: &str| place.dir.join(name).display().to_string();
    let ssl = |trusted: &str, more: &[&str]| {
        let trusted = path(trusted);
        let first = ["-h", ip.as_str(), "--ssl", "--truststore", trusted.as_str()];
        nodetool(&[&first[..], more, &["version"]].concat())
    };
    assert_eq!(ssl("ca.pem", &[]), version());
    let unknown = "SunCertPathBuilderException: 'unable to find valid certification path to \
                   requested target'";
    assert_eq!(ssl("other.pem", &[]), kept_out(&ip, unknown));
    let (code, out, err) = nodetool(&["-h", &ip, "version"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("nodetool: Failed to connect to") && err.contains("--ssl"), "{err}");
    node.stop();

    // a store that is changed and sound is served at once, one that is not changes nothing
    let node = place.serve(&set(&[port(&place), tls(&place)].concat()));
    tls(&place);
    assert_eq!(node.verb(&["reloadssl"]), "");
    assert_eq!(ssl("ca.pem", &[]), version());
    std::fs::write(path("node.pem"), "nothing").unwrap();
    let (code, _, err) = node.nodetool(&["reloadssl"]);
    assert!(code == 2 && err.contains("still using the previous ones"), "{err}");
    assert_eq!(ssl("ca.pem", &[]), version());
    node.stop();

    let mutual = vec!["admin_encryption_options.require_client_auth=true".to_owned()];
    let node = place.serve(&set(&[port(&place), tls(&place), mutual].concat()));
    let operator = path("operator.pem");
    assert_eq!(ssl("ca.pem", &["--keystore", &operator]), version());
    let stranger = path("stranger.pem");
    for more in [&[][..], &["--keystore", &stranger]] {
        let (code, out, err) = ssl("ca.pem", more);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert!(err.starts_with("nodetool: Failed to connect to"), "{err}");
    }
    node.stop();
}

#[test]
fn beyond_loopback_the_node_does_not_start_open() {
    let place = Place::new(35);
    // a port of its own: the wildcard address would take that of the other tests
    let beyond = ["admin_enabled=true", "admin_address=0.0.0.0", "admin_port=7198"];
    let beyond = || beyond.map(str::to_owned).to_vec();
    let is_open = "helenus: admin_address 0.0.0.0 is not loopback while admin_encryption_options \
                   or authentication is off: set admin_encryption_options.enabled to true and \
                   authenticator to PasswordAuthenticator, or admin_address to 127.0.0.1\n";
    for guards in [Vec::new(), roles(&place), tls(&place)] {
        let node = place.start(&set(&[beyond(), guards].concat()));
        assert_eq!(node.refuses(), is_open);
    }
    let guards = [beyond(), roles(&place), tls(&place)].concat();
    let node: Node = place.serve(&set(&guards));
    let (ip, trusted) = (place.ip(), place.dir.join("ca.pem").display().to_string());
    let who = ["-u", "admin", "-pw", "secret"];
    let how = ["-h", &ip, "-p", "7198", "--ssl", "--truststore", &trusted];
    assert_eq!(nodetool(&[&how[..], &who, &["version"]].concat()), version());
    let required = "SecurityException: 'Authentication failed! Credentials required'";
    let (code, out, err) = nodetool(&[&how[..], &["version"]].concat());
    assert_eq!((code, out.as_str()), (1, ""));
    assert_eq!(err, format!("nodetool: Failed to connect to '{ip}:7198' - {required}.\n"));
    node.stop();
}
