#!/bin/sh
# Runs within the new root file system, by chroot, before there is a machine: users, services, boot menu, requirements.
# usage: inside.sh UUID MACHINE_ID
set -eu
uuid=$1 machine_id=$2
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

echo guest >/etc/hostname
echo '127.0.0.1 localhost guest' >/etc/hosts
echo "UUID=$uuid / ext4 defaults,errors=remount-ro 0 0" >/etc/fstab
passwd --quiet --delete root
mkdir -p /var/log/journal

# Without these the first boot of each test would be a machine's very first one, with all that is done only then.
echo "$machine_id" >/etc/machine-id

# Timers that would fire whenever they like; a test that needs one starts it.
systemctl --quiet disable apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
    e2scrub_reap.service getty@tty1.service
# Servers and helpers of NFS: what needs them starts its own, in a network of its own.
systemctl --quiet disable nfs-server.service nfs-client.target nfs-blkmap.service rpcbind.service rpcbind.socket \
    rpc-statd.service rpc-statd-notify.service nfs-idmapd.service rpc-gssd.service || true
systemctl --quiet mask nfs-server.service nfs-blkmap.service rpcbind.service rpcbind.socket rpc-statd-notify.service
# What takes seconds of an emulated processor and serves nothing here; and kexec-tools would make each restart a kexec.
systemctl --quiet disable kexec.service kexec-load.service || true
systemctl --quiet mask kexec.service kexec-load.service systemd-binfmt.service proc-sys-fs-binfmt_misc.automount \
    modprobe@configfs.service modprobe@dm_mod.service modprobe@drm.service modprobe@efi_pstore.service \
    modprobe@fuse.service modprobe@loop.service dev-mqueue.mount sys-fs-fuse-connections.mount \
    sys-kernel-config.mount systemd-fsckd.service systemd-fsckd.socket systemd-logind.service \
    systemd-modules-load.service systemd-repart.service systemd-update-utmp.service \
    systemd-update-utmp-runlevel.service
# These run at each boot and at each daemon-reload; there is nothing that they would find but /etc/fstab.
mkdir -p /etc/systemd/system-generators
for generator in /usr/lib/systemd/system-generators/*; do
    case $generator in
        *fstab*) ;;
        *) ln -s /dev/null "/etc/systemd/system-generators/${generator##*/}" ;;
    esac
done
# The first file system is mounted without udev: its programs, and what they look for, take as long again.
rm /usr/share/initramfs-tools/hooks/udev /usr/share/initramfs-tools/scripts/init-*/udev
update-initramfs -u -k all

# update-grub asks grub-probe about the disk, which does not exist yet.
mv /usr/sbin/grub-probe /usr/sbin/grub-probe.real
cat >/usr/sbin/grub-probe <<EOF
#!/bin/sh
case "\$*" in
*fs_uuid*) echo $uuid ;;
*target=device*) echo /dev/vda1 ;;
*target=fs* | *"-t fs"*) echo ext2 ;;
*partmap*) echo msdos ;;
*compatibility_hint* | *target=drive* | *"-t drive"*) echo hd0,msdos1 ;;
*hints_string*) echo --hint-bios=hd0,msdos1 ;;
esac
EOF
chmod 755 /usr/sbin/grub-probe
mkdir -p /dev/disk/by-uuid /boot/grub
touch "/dev/disk/by-uuid/$uuid"
grub-editenv /boot/grub/grubenv create
update-grub
rm -r /dev/disk
mv /usr/sbin/grub-probe.real /usr/sbin/grub-probe
cp -r /usr/lib/grub/i386-pc /boot/grub/
rm -f /boot/grub/i386-pc/*.img
grub-mkimage --format=i386-pc --output=/boot/grub/i386-pc/core.img --prefix='(hd0,msdos1)/boot/grub' biosdisk part_msdos ext2
cp /usr/lib/grub/i386-pc/boot.img /boot/grub/i386-pc/

python3 -m venv /opt/etude
/opt/etude/bin/python -m pip install --quiet --no-index --find-links=/wheels --requirement=/wheels/requirements.txt
rm -rf /wheels
for program in etude etude-engine aptime getstats graphit io-static io-dynamic; do
    ln -s "/opt/etude/bin/$program" "/usr/local/bin/$program"
done

# Newer than all of /usr: nothing is to be brought up to date at the first boot.
touch /etc/.updated /var/.updated
