#!/bin/sh
# Installs a package into a copy of this machine's root directory that is thrown away, uses it, upgrades
# it, and removes it. Arguments: the format, the package, an empty directory. It needs root.
set -eu
format=$1 package=$2 top=$3

if [ "${inside:-}" != yes ]; then
	# In a mount namespace: an overlay over /, all changes in memory.
	mount -t tmpfs tmpfs "$top"
	mkdir "$top/upper" "$top/work" "$top/root"
	mount -t overlay overlay -o "lowerdir=/,upperdir=$top/upper,workdir=$top/work" "$top/root"
	mount --rbind /proc "$top/root/proc"
	mount --rbind /dev "$top/root/dev"
	mkdir "$top/root/package"
	cp "$package" "$0" "$top/root/package/"
	inside=yes exec chroot "$top/root" /bin/sh "/package/$(basename "$0")" "$format" "/package/$(basename "$package")" /package
fi

say() { printf '== %s\n' "$*"; }
rm -rf /var/lib/kuji /etc/kuji /usr/local/bin/kuji
case $format in
deb)
	install() { dpkg --force-confold -i "$package"; }
	remove() { dpkg -r kuji; }
	;;
rpm) # in a database of its own, as nothing else here came as RPM
	install() { rpm -U --replacepkgs --nodeps --dbpath /package/db "$package"; }
	remove() { rpm -e --nodeps --dbpath /package/db kuji; }
	;;
esac

# serving runs the server as its user with the installed settings and a command beside it.
serving() {
	rm -f /package/ready
	setpriv --reuid kuji --regid kuji --clear-groups kuji serve --config /etc/kuji/serve.yaml --data /var/lib/kuji \
		--listen 127.0.0.1:0 --catalog /usr/share/doc/kuji/examples/instant-win.yaml --json >/package/ready 2>/package/log &
	timeout 60 sh -c 'until grep -q "\"ready\"" /package/ready; do sleep 0.1; done' || { cat /package/log; exit 1; }
	"$@" --server "$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' /package/ready)"
	kill -TERM $!
	wait $!
}

say "install"
install
test "$(stat -c %U:%G:%a /var/lib/kuji)" = kuji:kuji:700
test "$(stat -c %U:%G:%a /etc/kuji)" = root:kuji:750
grep -q '^User=kuji$' /usr/lib/systemd/system/kuji.service
grep -q '^ExecStart=/usr/bin/kuji serve --config /etc/kuji/serve.yaml --data /var/lib/kuji$' /usr/lib/systemd/system/kuji.service
gzip -dc /usr/share/man/man1/kuji-serve.1.gz | grep -q must
kuji version

say "serve and draw"
serving kuji draw ann splash --id 01J851D5RTQ4Z8XKB7N3VYEH6C

say "upgrade: settings and data stay"
echo '# mine' >>/etc/kuji/serve.yaml
touch -d @1 /etc/kuji/serve.yaml
install
grep -q '^# mine$' /etc/kuji/serve.yaml
test "$(stat -c %U:%G:%a /etc/kuji)" = root:kuji:750
serving kuji draw ann splash --json --id 01J851D5RTQ4Z8XKB7N3VYEH6C | grep '"replayed": *true'
setpriv --reuid kuji --regid kuji --clear-groups kuji verify --data /var/lib/kuji

say "remove: data stays"
remove
test ! -e /usr/bin/kuji
test -s /var/lib/kuji/key
getent passwd kuji
case $format in
deb)
	grep -q '^# mine$' /etc/kuji/serve.yaml
	say "purge: settings go, data stays"
	dpkg -P kuji
	test ! -e /etc/kuji/serve.yaml
	test -s /var/lib/kuji/key
	;;
rpm) grep -q '^# mine$' /etc/kuji/serve.yaml.rpmsave ;;
esac

say "installed again, over what stayed"
install
setpriv --reuid kuji --regid kuji --clear-groups kuji verify --data /var/lib/kuji
