//! Configurations as operators have them: the files of Cassandra's releases, a file of which much
//! is wrong, two files, and the environment.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::node::{Node, Place};

/// What the files of 4.0, 4.1 and 5.0 set, rebuilt: the heads of the files say how.
const SHIPPED: [(&str, &str); 3] = [
    ("4.0", include_str!("../../../../crates/config/testdata/shipped-4.0.yaml")),
    ("4.1", include_str!("../../../../crates/config/testdata/shipped-4.1.yaml")),
    ("5.0", include_str!("../../../../crates/config/testdata/shipped-5.0.yaml")),
];

/// A folder of configuration with a `cassandra.yaml`.
fn conf(place: &Place, yaml: &str) -> PathBuf {
    let conf = place.dir.join("conf");
    std::fs::create_dir_all(&conf).unwrap();
    std::fs::write(conf.join("cassandra.yaml"), yaml).unwrap();
    conf
}

#[test]
fn the_files_that_cassandra_ships_start_a_node() {
    for (number, (release, text)) in (40..).zip(SHIPPED) {
        let place = Place::new(number);
        let (ip, data) = (place.ip(), place.data());
        // addresses and directories alone are others
        let yaml = text
            .replace("listen_address: localhost", &format!("listen_address: {ip}"))
            .replace("rpc_address: localhost", &format!("rpc_address: {ip}"))
            .replace("127.0.0.1:7000", &format!("{ip}:7000"));
        let folders = format!(
            "data_file_directories: [ {0}/data ]\ncommitlog_directory: {0}/commitlog\n\
             hints_directory: {0}/hints\nsaved_caches_directory: {0}/saved_caches\n",
            data.display()
        );
        assert!(yaml.contains(&format!("listen_address: {ip}")), "{release}");
        let yaml = conf(&place, &format!("{yaml}{folders}")).join("cassandra.yaml");
        let node = place.serve(&["--config", yaml.to_str().unwrap()]);
        assert!(node.verb(&["describecluster"]).contains("Name: Test Cluster"), "{release}");
        node.stop();
    }
}

#[test]
fn all_that_stops_the_start_is_said_at_once() {
    let place = Place::new(43);
    let yaml = "start_rpc: true\nnum_tokenz: 4\nauthenticator: com.example.Mine\n\
                auto_repair:\n  enabled: true\n";
    let conf = conf(&place, yaml);
    std::fs::write(conf.join("helenus.yaml"), "\ncluster_name: mine\n").unwrap();
    let path = conf.join("cassandra.yaml");
    let node = place.start(&["--config", path.to_str().unwrap()]);
    let (code, said) = node.ended();
    let name = path.display();
    let starts = [
        "helenus: 5 settings stop the start:".to_owned(),
        format!("  {name} line 1: Cassandra 4.0 dropped start_rpc: set start_native_transport"),
        format!("  {name} line 2: unknown key num_tokenz: did you mean num_tokens?"),
        format!("  {name} line 3: authenticator: \"com.example.Mine\" is not supported: only "),
        format!("  {name} line 5: auto_repair.enabled: \"true\" is not supported: only "),
        format!("  {} line 2: cluster_name is a key of ", conf.join("helenus.yaml").display()),
    ];
    assert_eq!((code, said.lines().count()), (Some(1), starts.len()), "{said}");
    for (line, start) in said.lines().zip(&starts) {
        assert!(line.starts_with(start), "{line}\n{start}");
    }
}

/// What `helenus check-config` prints of a file, and whether it holds that a node starts with it.
fn checked(path: &Path, more: &[&str]) -> (bool, String, String) {
    let mut check = Command::new(env!("CARGO_BIN_EXE_helenus"));
    let done = check.arg("check-config").arg(path).args(more).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.success(), text(done.stdout), text(done.stderr))
}

#[test]
fn a_file_is_checked_without_a_start() {
    let place = Place::new(47);
    let good = "listen_address: localhost\nconcurrent_reads: 99\n";
    let path = conf(&place, good).join("cassandra.yaml");
    let name = path.display();
    let reason = "the setting concurrent_reads has no effect: shards serve requests";
    let (starts, said, wrong) = checked(&path, &[]);
    let lines: Vec<&str> = said.lines().collect();
    assert!(starts && wrong.is_empty() && lines.len() == 2, "{said}{wrong}");
    assert!(lines[0].starts_with(reason), "{said}");
    assert_eq!(lines[1], format!("{name} is accepted"));
    // all that is wrong, and what would have no effect beside it
    conf(&place, &format!("{good}start_rpc: true\ncdc_enable: true\n"));
    let (starts, said, wrong) = checked(&path, &[]);
    assert!(!starts && said.starts_with(reason) && said.lines().count() == 1, "{said}");
    let says = ["helenus: 2 settings stop the start:", "line 3: Cassandra 4.0", "line 4: unknown"];
    assert_eq!(wrong.lines().count(), says.len(), "{wrong}");
    assert!(wrong.lines().zip(says).all(|(line, says)| line.contains(says)), "{wrong}");
    // what a node says only once it begins
    conf(&place, &format!("{good}rpc_address: 192.0.2.1\n"));
    let (starts, _, wrong) = checked(&path, &[]);
    assert!(!starts && wrong.contains("rpc_address 192.0.2.1 is not loopback"), "{wrong}");
    assert!(checked(&path, &["--set", "rpc_address=127.0.0.1"]).0);
    assert!(!place.data().exists());
}

#[test]
fn the_environment_names_the_folder_and_sets_what_tests_and_charts_set() {
    let place = Place::new(44);
    let ip = place.ip();
    let conf = conf(&place, "num_tokens: 4\nendpoint_snitch: GossipingPropertyFileSnitch\n");
    std::fs::write(conf.join("helenus.yaml"), format!("metrics_address: {ip}\n")).unwrap();
    std::fs::write(conf.join("cassandra-rackdc.properties"), "dc=here\nrack=r1\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_helenus"));
    command.env("CASSANDRA_CONF", &conf).env(
        "JVM_OPTS",
        "-Xmx1G -Dcassandra.cluster_name=charted -Dcassandra.skip_wait_for_gossip_to_settle=0 \
         -Dcassandra.initial_token=5,6 -Dcassandra.load_ring_state=false",
    );
    let node = Node::start_by(command, &ip, &place.data(), &[]);
    node.line("the JVM property cassandra.load_ring_state has no effect here");
    node.line("Starting listening for CQL clients");
    assert!(node.verb(&["describecluster"]).contains("Name: charted"));
    let info = node.verb(&["info", "-T"]);
    assert!(info.contains(": here\n"), "{info}");
    let tokens: Vec<_> = info.lines().filter(|line| line.starts_with("Token")).collect();
    assert_eq!(tokens.len(), 2, "{info}");
    node.signal("-TERM");
    let (code, said) = node.ended();
    assert_eq!(code, Some(0), "{said}");
}

/// A metadata service of EC2 with IMDSv2 on loopback, for as long as the test's process runs: its
/// port. It takes every second token that it gives, and knows no public address.
fn metadata_service() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut tokens = 0;
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = stream;
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head: Vec<_> = lines.map_while(Result::ok).take_while(|l| !l.is_empty()).collect();
            let has = |header: &str| head.iter().any(|line| line.eq_ignore_ascii_case(header));
            let (status, body) = match head.first().map(String::as_str) {
                Some("PUT /latest/api/token HTTP/1.1")
                    if has("X-aws-ec2-metadata-token-ttl-seconds: 21600") =>
                {
                    tokens += 1;
                    ("200 OK", format!("token-{tokens}"))
                }
                _ if tokens % 2 == 1
                    || !has(&format!("X-aws-ec2-metadata-token: token-{tokens}")) =>
                {
                    ("401 Unauthorized", String::new())
                }
                Some("GET /latest/meta-data/placement/availability-zone HTTP/1.1") => {
                    ("200 OK", "us-east-2b".to_owned())
                }
                _ => ("404 Not Found", String::new()),
            };
            let length = body.len();
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    port
}

#[test]
fn a_cloud_says_where_the_node_is_or_why_not() {
    let place = Place::new(45);
    let conf = conf(&place, "endpoint_snitch: Ec2Snitch\n");
    let properties = |text: String| {
        std::fs::write(conf.join("cassandra-rackdc.properties"), text).unwrap();
    };
    let port = metadata_service();
    let yaml = conf.join("cassandra.yaml");
    let arguments = ["--config", yaml.to_str().unwrap()];
    properties(format!("ec2_metadata_url=http://127.0.0.1:{port}\ndc_suffix=_x\n"));
    let node = place.serve(&arguments);
    let info = node.verb(&["info"]);
    assert!(info.contains(": us-east-2_x\n") && info.contains(": us-east-2b\n"), "{info}");
    node.stop();
    // no public address is there, and then nobody at all
    let multi = [&arguments[..], &["--set", "endpoint_snitch=Ec2MultiRegionSnitch"]].concat();
    let refusal = place.start(&multi).refuses();
    let public = format!(
        "GET http://127.0.0.1:{port}/latest/meta-data/public-ipv4: HTTP response code: 404"
    );
    assert!(refusal.contains(&public), "{refusal}");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    properties(format!("ec2_metadata_url=http://127.0.0.1:{nobody}\n"));
    let refusal = place.start(&arguments).refuses();
    let why = "endpoint_snitch Ec2Snitch: the metadata service of the cloud did not answer PUT ";
    assert!(refusal.contains(why) && refusal.contains("cassandra-rackdc.properties"), "{refusal}");
}

#[test]
fn an_interface_is_listened_on() {
    let place = Place::new(46);
    let conf = conf(&place, "listen_interface: lo\nrpc_interface: helenus0\n");
    let yaml = conf.join("cassandra.yaml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_helenus"));
    command.arg("--config").arg(&yaml).arg("--data-dir").arg(place.data());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "helenus: Configured rpc_interface \"helenus0\" could not be found\n");
    assert_eq!(output.status.code(), Some(1));
}
